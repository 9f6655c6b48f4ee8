// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Receives {@code count} messages (for each of {@code threads} producers) and compares every byte. {@code await=eos}
 * continues until the image has reached its end of stream and is unavailable; {@code await=input} until standard input is
 * closed. A late joiner passes the length of a frame, {@code frame=96}: the join position then determines which messages
 * precede it, and {@code count} is the number of messages from the start of the stream. {@code sources=a,b} are added to a
 * subscription with manual control mode.
 */
final class Subscribe
{
    private Subscribe()
    {
    }

    static void run(final Args args) throws Exception
    {
        final long deadline = args.deadline();
        final AtomicBoolean gone = new AtomicBoolean();
        final Check check = new Check(args);
        try (Aeron aeron = args.connect();
            Subscription subscription = args.again(() -> aeron.addSubscription(
                args.text("channel"),
                args.stream(),
                (image) ->
                {
                    check.join(image.joinPosition());
                    Main.say("AVAILABLE session=%d join=%d source=%s",
                        image.sessionId(), image.joinPosition(), image.sourceIdentity());
                },
                (image) ->
                {
                    Main.say("UNAVAILABLE session=%d position=%d eos=%b",
                        image.sessionId(), image.position(), image.isEndOfStream());
                    gone.set(true);
                })))
        {
            for (final String source : args.text("sources", "").split(","))
            {
                if (!source.isEmpty())
                {
                    subscription.addDestination(source);
                }
            }
            Main.say("SUBSCRIBED");
            final FragmentHandler handler = new FragmentAssembler(check);
            final long expected = args.number("count", 1) * args.number("threads", 1);
            while (check.missed + check.received < expected)
            {
                if (subscription.poll(handler, 64) == 0)
                {
                    Thread.yield();
                    if (System.nanoTime() > deadline)
                    {
                        throw new IllegalStateException("received " + check.received + " of " + expected);
                    }
                }
            }
            Main.say("RECEIVED count=%d bytes=%d", check.received, check.bytes);
            awaitEnd(args, deadline, gone, check, () -> subscription.poll(handler, 64), subscription);
        }
        Main.say("CLOSED");
    }

    private static void awaitEnd(
        final Args args,
        final long deadline,
        final AtomicBoolean gone,
        final Check check,
        final Runnable poll,
        final Subscription subscription) throws Exception
    {
        final long received = check.received;
        if ("eos".equals(args.text("await", "")))
        {
            boolean ended = false;
            while (!gone.get())
            {
                poll.run();
                if (!ended && subscription.imageCount() > 0 && subscription.imageAtIndex(0).isEndOfStream())
                {
                    ended = true;
                    Main.say("END_OF_STREAM");
                }
                if (System.nanoTime() > deadline)
                {
                    throw new IllegalStateException("the image is still available");
                }
                Thread.sleep(1);
            }
        }
        else if ("input".equals(args.text("await", "")))
        {
            final Thread input = new Thread(() ->
            {
                try
                {
                    Main.awaitEndOfInput();
                }
                catch (final java.io.IOException ignore)
                {
                    // A closed pipe is an end of input, too.
                }
            });
            input.start();
            while (input.isAlive())
            {
                poll.run();
                Thread.sleep(1);
            }
        }
        if (check.received != received)
        {
            throw new IllegalStateException((check.received - received) + " messages too many");
        }
    }

    /** Compares messages, in order for each producer, with {@link Pattern}. */
    private static final class Check implements FragmentHandler
    {
        private final Map<Integer, Long> next = new HashMap<>();
        private final int[] lengths;
        private final boolean tagged;
        private final long frame;
        private volatile long missed;
        private long received;
        private long bytes;

        private Check(final Args args)
        {
            lengths = args.lengths();
            tagged = args.number("threads", 1) > 1;
            frame = args.number("frame", 0);
        }

        /** Called before the first message of the image is polled. */
        private void join(final long position)
        {
            missed = frame == 0 ? 0 : position / frame;
        }

        public void onFragment(
            final org.agrona.DirectBuffer buffer, final int offset, final int length, final io.aeron.logbuffer.Header header)
        {
            final int producer = tagged ? buffer.getInt(offset) : 0;
            final long expected = next.getOrDefault(producer, missed);
            final long sequence = tagged ? buffer.getLong(offset + 4) : expected;
            if (sequence != expected)
            {
                throw fail("producer " + producer + ": message " + sequence + " instead of " + expected);
            }
            if (length != lengths[(int)(sequence % lengths.length)])
            {
                throw fail("message " + sequence + " has length " + length);
            }
            final int wrong = Pattern.mismatch(buffer, offset, length, producer, sequence, tagged);
            if (wrong >= 0)
            {
                throw fail("message " + sequence + " differs at byte " + wrong);
            }
            next.put(producer, expected + 1);
            received++;
            bytes += length;
        }

        /** Ends the program: an exception in a handler would only reach the client's error handler. */
        private static IllegalStateException fail(final String text)
        {
            System.err.println("MISMATCH " + text);
            System.exit(3);
            return new IllegalStateException(text);
        }
    }
}
