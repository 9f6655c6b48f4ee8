// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** Both ends of response channels. */
final class Responses
{
    private Responses()
    {
    }

    /**
     * Responds to every request of {@code channel} with the request itself, on a publication of {@code reply} for each image.
     * Ends when standard input is closed.
     */
    static void answer(final Args args) throws Exception
    {
        final AtomicBoolean running = new AtomicBoolean(true);
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
            running.set(false);
        });
        input.setDaemon(true);
        input.start();
        final Map<Integer, Publication> answers = new HashMap<>();
        try (Aeron aeron = args.connect();
            Subscription subscription = args.again(
                () -> aeron.addSubscription(args.text("channel"), args.stream())))
        {
            Main.say("READY");
            final FragmentHandler handler = (buffer, offset, length, header) ->
            {
                final Publication publication = answers.get(header.sessionId());
                while (running.get() && publication.offer(buffer, offset, length) < 0)
                {
                    Thread.yield();
                }
            };
            while (running.get())
            {
                for (final Image image : subscription.images())
                {
                    if (!answers.containsKey(image.sessionId()))
                    {
                        final String channel = new ChannelUriStringBuilder(args.text("reply"))
                            .responseCorrelationId(image.correlationId()).build();
                        answers.put(
                            image.sessionId(), aeron.addPublication(channel, (int)args.number("reply-stream", 1002)));
                    }
                }
                if (subscription.poll(handler, 10) == 0)
                {
                    Thread.sleep(1);
                }
            }
        }
    }

    /** Sends {@code count} requests on {@code channel}, and waits for the response to each on {@code reply}. */
    static void ask(final Args args) throws Exception
    {
        final long deadline = args.deadline();
        final long count = args.number("count", 10);
        try (Aeron aeron = args.connect();
            Subscription answers = aeron.addSubscription(args.text("reply"), (int)args.number("reply-stream", 1002)))
        {
            final String channel = new ChannelUriStringBuilder(args.text("channel"))
                .responseCorrelationId(answers.registrationId()).build();
            try (Publication requests = aeron.addPublication(channel, args.stream()))
            {
                final UnsafeBuffer request = new UnsafeBuffer(new byte[64]);
                final long[] answered = { 0 };
                final long mine = requests.sessionId();
                final FragmentHandler handler = (buffer, offset, length, header) ->
                {
                    if (buffer.getLong(offset) != mine || buffer.getLong(offset + 8) != answered[0])
                    {
                        throw new IllegalStateException("a response to another request");
                    }
                    answered[0]++;
                };
                while (!answers.isConnected())
                {
                    check(deadline, "no answers");
                    Thread.sleep(1);
                }
                if (answers.imageCount() != 1)
                {
                    throw new IllegalStateException(answers.imageCount() + " response streams");
                }
                for (long sent = 0; answered[0] < count; )
                {
                    request.putLong(0, mine);
                    request.putLong(8, sent);
                    if (sent < count && requests.offer(request) > 0)
                    {
                        sent++;
                    }
                    if (answers.poll(handler, 10) == 0)
                    {
                        check(deadline, "answer " + answered[0]);
                        Thread.yield();
                    }
                }
                Main.say("ANSWERED %d", answered[0]);
            }
        }
    }

    private static void check(final long deadline, final String condition)
    {
        if (System.nanoTime() > deadline)
        {
            throw new IllegalStateException("timed out: " + condition);
        }
    }
}
