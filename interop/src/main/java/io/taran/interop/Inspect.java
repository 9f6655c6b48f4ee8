// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.CncFileDescriptor;
import io.aeron.CommonContext;
import org.agrona.IoUtil;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.errors.ErrorLogReader;
import org.agrona.concurrent.status.CountersReader;

import java.io.File;
import java.nio.MappedByteBuffer;

/** Contents of a driver's directory as the official readers see them. */
final class Inspect
{
    private Inspect()
    {
    }

    /** {@code COUNTER id type registration owner value label}, one line each. */
    static void counters(final Args args)
    {
        try (Aeron aeron = args.connect())
        {
            final CountersReader reader = aeron.countersReader();
            reader.forEach((id, typeId, key, label) -> Main.say("COUNTER %d %d %d %d %d %s",
                id, typeId, reader.getCounterRegistrationId(id), reader.getCounterOwnerId(id),
                reader.getCounterValue(id), label));
            Main.say("MAX %d", reader.maxCounterId());
        }
    }

    /** {@code ERROR count text}, one line each; line ends in the text become spaces. */
    static void errors(final Args args)
    {
        final MappedByteBuffer cnc = IoUtil.mapExistingFile(
            new File(args.text("dir"), CncFileDescriptor.CNC_FILE), "cnc");
        final UnsafeBuffer header = CncFileDescriptor.createMetaDataBuffer(cnc);
        final AtomicBuffer log = CncFileDescriptor.createErrorLogBuffer(cnc, header);
        final int distinct = ErrorLogReader.read(log, (count, first, last, text) ->
            Main.say("ERROR %d %s", count, text.replaceAll("\\s+", " ")));
        Main.say("DISTINCT %d", distinct);
        IoUtil.unmap(cnc);
    }

    static void alive(final Args args)
    {
        Main.say("ALIVE %b", CommonContext.isDriverActive(new File(args.text("dir")), args.number("limit", 10_000), (text) -> {}));
    }

    static void terminate(final Args args)
    {
        final UnsafeBuffer token = new UnsafeBuffer(new byte[0]);
        Main.say("REQUESTED %b", CommonContext.requestDriverTermination(new File(args.text("dir")), token, 0, 0));
    }
}
