// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A client that the test kills: it sends {@code count} messages, claims one more without committing it when
 * {@code claim=true}, and waits.
 */
final class Die
{
    private Die()
    {
    }

    static void run(final Args args) throws Exception
    {
        final Aeron aeron = args.connect();
        final Publication publication = aeron.addPublication(args.text("channel"), args.stream());
        final long deadline = args.deadline();
        final int[] lengths = args.lengths();
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[1 << 20]);
        for (long n = 0; n < args.number("count", 0); n++)
        {
            final int length = lengths[(int)(n % lengths.length)];
            Pattern.fill(buffer, length, 0, n, false);
            while (publication.offer(buffer, 0, length) <= 0)
            {
                check(deadline);
            }
        }
        if (args.flag("claim"))
        {
            final BufferClaim claim = new BufferClaim();
            while (publication.tryClaim(lengths[0], claim) <= 0)
            {
                check(deadline);
            }
        }
        Main.say("WAITING client=%d session=%d position=%d",
            aeron.clientId(), publication.sessionId(), publication.position());
        Main.awaitEndOfInput();
    }

    private static void check(final long deadline)
    {
        if (System.nanoTime() > deadline)
        {
            throw new IllegalStateException("timed out");
        }
        Thread.yield();
    }
}
