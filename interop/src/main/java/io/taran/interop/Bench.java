// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Locale;

/**
 * The loads of {@code cargo xtask compare} for the official Java client, the same as those of {@code crates/bench}: a stream
 * at maximum rate with every message checked, and round trips of single messages. Ends when standard input is closed.
 */
final class Bench
{
    /** Length of the time and number at the start of a message; the rest is filled with a byte derived from the number. */
    private static final int HEAD = 16;
    private static final int BURST = 100;
    private static final int STREAM_LIMIT = 256;
    private static final int PING_LIMIT = 10;
    private static final long MILLI = 1_000_000L;
    private static final double[] QUANTILES = {
        0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 0.9995, 0.9999,
        0.99999, 1.0 };

    private final int length;
    private final long warmUp;
    private final long measured;
    private final long deadline;
    private final boolean spins;
    private final BufferClaim claim = new BufferClaim();
    /** Counts of received messages. */
    private long messages;
    private long defects;
    private long next;

    private Bench(final Args args)
    {
        length = (int)args.number("length", 288);
        warmUp = args.number("warmup-ms", 3_000) * MILLI;
        measured = args.number("measure-ms", 1_000) * MILLI;
        deadline = args.deadline();
        spins = "spin".equals(args.text("idle", "yield"));
        endWithInput();
    }

    private static void endWithInput()
    {
        final Thread input = new Thread(() ->
        {
            try
            {
                while (System.in.read() >= 0)
                {
                    Thread.onSpinWait();
                }
            }
            catch (final java.io.IOException ignore)
            {
                // A read error counts as the end of input.
            }
            Runtime.getRuntime().halt(0);
        });
        input.setDaemon(true);
        input.start();
    }

    static void publish(final Args args)
    {
        final Bench bench = new Bench(args);
        try (Aeron aeron = args.connect();
            ExclusivePublication publication = aeron.addExclusivePublication(args.text("channel"), args.stream()))
        {
            bench.await(publication::isConnected);
            // Longer than the measurement of the subscriber.
            final long end = System.nanoTime() + bench.warmUp + bench.measured + bench.measured / 10 + 500 * MILLI;
            long sequence = 0;
            for (long now = System.nanoTime(); now < end; now = System.nanoTime())
            {
                for (int i = 0; i < BURST && bench.send(publication, now, sequence); i++)
                {
                    sequence++;
                }
                bench.idle();
            }
        }
    }

    static void subscribe(final Args args)
    {
        final Bench bench = new Bench(args);
        try (Aeron aeron = args.connect();
            Subscription subscription = aeron.addSubscription(args.text("channel"), args.stream()))
        {
            Main.say("READY");
            bench.await(subscription::isConnected);
            final FragmentHandler take = (buffer, offset, size, header) -> bench.take(buffer, offset, size);
            final long start = System.nanoTime() + bench.warmUp;
            long from = 0;
            long before = -1;
            while (subscription.isConnected())
            {
                bench.idle();
                subscription.poll(take, STREAM_LIMIT);
                final long now = System.nanoTime();
                if (before < 0 && now >= start)
                {
                    from = now;
                    before = bench.messages;
                }
                if (before >= 0 && now >= start + bench.measured)
                {
                    bench.report((bench.messages - before) * 1e9 / (now - from), "");
                    return;
                }
            }
            throw new IllegalStateException("the stream ended too early, after " + bench.messages + " messages");
        }
    }

    static void ping(final Args args)
    {
        final Bench bench = new Bench(args);
        try (Aeron aeron = args.connect();
            Subscription back = aeron.addSubscription(args.text("channel"), args.stream() + 1);
            ExclusivePublication there = aeron.addExclusivePublication(args.text("channel"), args.stream()))
        {
            bench.await(() -> there.isConnected() && back.isConnected());
            final FragmentHandler take = (buffer, offset, size, header) -> bench.take(buffer, offset, size);
            final long start = System.nanoTime() + bench.warmUp;
            long[] trips = new long[1 << 20];
            int count = 0;
            for (long sent = System.nanoTime(); sent < start + bench.measured; sent = System.nanoTime())
            {
                while (!bench.send(there, sent, bench.next))
                {
                    bench.idle();
                }
                bench.idle();
                final long expected = bench.messages + 1;
                while (back.poll(take, PING_LIMIT) == 0)
                {
                    bench.idle();
                }
                if (bench.defects > 0 || bench.messages != expected)
                {
                    throw new IllegalStateException("message " + bench.next + " was lost or changed");
                }
                if (sent >= start)
                {
                    trips = count == trips.length ? Arrays.copyOf(trips, 2 * count) : trips;
                    trips[count++] = System.nanoTime() - sent;
                }
            }
            bench.report(count * 1e9 / bench.measured, quantiles(Arrays.copyOf(trips, count)));
        }
    }

    static void pong(final Args args)
    {
        final Bench bench = new Bench(args);
        try (Aeron aeron = args.connect();
            Subscription there = aeron.addSubscription(args.text("channel"), args.stream());
            ExclusivePublication back = aeron.addExclusivePublication(args.text("channel"), args.stream() + 1))
        {
            Main.say("READY");
            bench.await(() -> there.isConnected() && back.isConnected());
            final UnsafeBuffer message = new UnsafeBuffer(new byte[bench.length]);
            final FragmentHandler take = (buffer, offset, size, header) -> message.putBytes(0, buffer, offset, size);
            while (there.isConnected())
            {
                if (there.poll(take, 1) > 0)
                {
                    while (accepted(back.tryClaim(bench.length, bench.claim)) <= 0)
                    {
                        bench.idle();
                    }
                    bench.claim.buffer().putBytes(bench.claim.offset(), message, 0, bench.length);
                    bench.claim.commit();
                }
                bench.idle();
            }
        }
    }

    /** Idles between two polls, as the benchmarks of the other clients do. */
    private void idle()
    {
        if (spins)
        {
            Thread.onSpinWait();
        }
        else
        {
            Thread.yield();
        }
    }

    private interface Condition
    {
        boolean holds();
    }

    private void await(final Condition condition)
    {
        while (!condition.holds())
        {
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("the peer does not connect");
            }
            idle();
        }
    }

    private boolean send(final ExclusivePublication publication, final long now, final long sequence)
    {
        if (accepted(publication.tryClaim(length, claim)) <= 0)
        {
            return false;
        }
        final MutableDirectBuffer buffer = claim.buffer();
        final int at = claim.offset();
        buffer.putLong(at, now, ByteOrder.LITTLE_ENDIAN);
        buffer.putLong(at + 8, sequence, ByteOrder.LITTLE_ENDIAN);
        buffer.setMemory(at + HEAD, length - HEAD, filler(sequence));
        claim.commit();
        return true;
    }

    /** Returns a negative value for a temporary error; throws for a permanent one. */
    private static long accepted(final long result)
    {
        if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
        {
            throw new IllegalStateException("a message was rejected: " + result);
        }
        return result;
    }

    private void take(final DirectBuffer buffer, final int offset, final int size)
    {
        messages++;
        final long sequence = size == length ? buffer.getLong(offset + 8, ByteOrder.LITTLE_ENDIAN) : -1;
        if (sequence != next || !isFilled(buffer, offset + HEAD, size - HEAD, filler(sequence)))
        {
            defects++;
        }
        next = sequence + 1;
    }

    private static boolean isFilled(final DirectBuffer buffer, final int offset, final int size, final byte filler)
    {
        final long expected = 0x0101010101010101L * (filler & 0xFF);
        long difference = 0;
        int at = 0;
        for (; at + 8 <= size; at += 8)
        {
            difference |= buffer.getLong(offset + at) ^ expected;
        }
        for (; at < size; at++)
        {
            difference |= buffer.getByte(offset + at) ^ filler;
        }
        return difference == 0;
    }

    private static byte filler(final long sequence)
    {
        return (byte)(sequence % 251);
    }

    private static String quantiles(final long[] trips)
    {
        Arrays.sort(trips);
        final StringBuilder text = new StringBuilder();
        for (final double quantile : QUANTILES)
        {
            if (trips.length > 0)
            {
                final int index = (int)Math.ceil(quantile * trips.length) - 1;
                text.append(text.length() == 0 ? "" : ",")
                    .append('[').append(quantile).append(',').append(trips[Math.max(index, 0)]).append(']');
            }
        }
        return text.toString();
    }

    private void report(final double rate, final String roundTrips)
    {
        Main.say("{\"rate\":%s,\"defects\":%d,\"is_held\":true,\"round_trips\":[%s]}",
            String.format(Locale.ROOT, "%.1f", rate), defects, roundTrips);
    }
}
