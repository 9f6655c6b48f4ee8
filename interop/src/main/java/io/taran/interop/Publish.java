// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.ExclusivePublication;
import io.aeron.logbuffer.BufferClaim;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Sends {@code count} messages of {@code lengths}, cycling through these. {@code exclusive} and {@code claim} choose the call;
 * {@code threads} producers share one publication; {@code destinations}, separated by commas, are added to it;
 * {@code linger=true} keeps it open until standard input is closed.
 */
final class Publish
{
    private Publish()
    {
    }

    /** Tries once to send; returns the result of {@link Publication#offer}. */
    private interface Offer
    {
        long attempt(UnsafeBuffer buffer, int length);
    }

    static void run(final Args args) throws Exception
    {
        final long deadline = args.deadline();
        try (Aeron aeron = args.connect();
            Publication publication = args.again(() -> args.flag("exclusive") ?
                aeron.addExclusivePublication(args.text("channel"), args.stream()) :
                aeron.addPublication(args.text("channel"), args.stream())))
        {
            Main.say("PUBLICATION session=%d", publication.sessionId());
            for (final String destination : args.text("destinations", "").split(","))
            {
                if (!destination.isEmpty())
                {
                    publication.addDestination(destination);
                }
            }
            while (!publication.isConnected())
            {
                if (System.nanoTime() > deadline)
                {
                    throw new IllegalStateException("not connected");
                }
                Thread.sleep(1);
            }
            Main.say("CONNECTED");
            produceAll(args, publication, deadline);
            Main.say("SENT position=%d", publication.position());
            if (args.flag("linger"))
            {
                Main.awaitEndOfInput();
            }
        }
        Main.say("CLOSED");
    }

    private static void produceAll(final Args args, final Publication publication, final long deadline)
        throws InterruptedException
    {
        final List<Thread> producers = new ArrayList<>();
        final List<Throwable> failures = new ArrayList<>();
        for (int i = 0; i < args.number("threads", 1); i++)
        {
            final int producer = i;
            final Thread thread = new Thread(() -> produce(args, producer, deadline, offer(args, publication)));
            thread.setUncaughtExceptionHandler((ignore, failure) ->
            {
                synchronized (failures)
                {
                    failures.add(failure);
                }
            });
            thread.start();
            producers.add(thread);
        }
        for (final Thread thread : producers)
        {
            thread.join();
        }
        if (!failures.isEmpty())
        {
            throw new IllegalStateException("a producer failed", failures.get(0));
        }
    }

    private static Offer offer(final Args args, final Publication publication)
    {
        if (!args.flag("claim"))
        {
            return (buffer, length) -> publication.offer(buffer, 0, length);
        }
        final BufferClaim claim = new BufferClaim();
        return (buffer, length) ->
        {
            final long result = publication.tryClaim(length, claim);
            if (result > 0)
            {
                claim.buffer().putBytes(claim.offset(), buffer, 0, length);
                claim.commit();
            }
            return result;
        };
    }

    private static void produce(final Args args, final int producer, final long deadline, final Offer offer)
    {
        final boolean tagged = args.number("threads", 1) > 1;
        final int[] lengths = args.lengths();
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[Math.max(1, Arrays.stream(lengths).max().getAsInt())]);
        final long count = args.number("count", 1);
        for (long n = 0; n < count; n++)
        {
            final int length = lengths[(int)(n % lengths.length)];
            Pattern.fill(buffer, length, producer, n, tagged);
            long result;
            while ((result = offer.attempt(buffer, length)) <= 0)
            {
                if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
                {
                    throw new IllegalStateException("offer returned " + result + " at message " + n);
                }
                if (System.nanoTime() > deadline)
                {
                    throw new IllegalStateException("timed out at message " + n + ", last result " + result);
                }
                Thread.yield();
            }
        }
    }
}
