// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Premature ends of streams. The publisher sends a number every {@code pause} milliseconds, prints SENT after {@code count}
 * of them, and continues until standard input is closed; then it closes the publication, or revokes it with
 * {@code revoke=true}. The subscriber prints RECEIVED after {@code count} numbers in order; then it rejects the image with
 * {@code reject=TEXT}, stops polling until the image is unavailable with {@code stall=true}, and continues until standard
 * input is closed. Both print the events that their client reports.
 */
final class StreamEnds
{
    private StreamEnds()
    {
    }

    private static Thread input(final AtomicBoolean over)
    {
        final Thread thread = new Thread(() ->
        {
            try
            {
                Main.awaitEndOfInput();
            }
            catch (final java.io.IOException ignore)
            {
                // A closed pipe is an end of input, too.
            }
            over.set(true);
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void publish(final Args args) throws Exception
    {
        final AtomicBoolean over = new AtomicBoolean();
        input(over);
        final Aeron.Context context = new Aeron.Context()
            .aeronDirectoryName(args.text("dir"))
            .publicationErrorFrameHandler((frame) -> Main.say("PUBLICATION_ERROR code=%d session=%d text=%s",
                frame.errorCode(), frame.sessionId(), frame.errorMessage()));
        try (Aeron aeron = Aeron.connect(context);
            ExclusivePublication publication = aeron.addExclusivePublication(args.text("channel"), args.stream()))
        {
            Main.say("PUBLICATION session=%d", publication.sessionId());
            final UnsafeBuffer buffer = new UnsafeBuffer(new byte[(int)args.number("length", 8)]);
            final long count = args.number("count", 1);
            final long deadline = args.deadline();
            boolean connected = false;
            long sent = 0;
            while (!over.get() && System.nanoTime() < deadline)
            {
                if (connected != publication.isConnected())
                {
                    connected = !connected;
                    Main.say(connected ? "CONNECTED" : "DISCONNECTED");
                }
                buffer.putLong(0, sent);
                if (publication.offer(buffer) > 0 && ++sent == count)
                {
                    Main.say("SENT position=%d", publication.position());
                }
                Thread.sleep(args.number("pause", 1));
            }
            if (args.flag("revoke"))
            {
                publication.revoke();
                Main.say("REVOKED");
            }
        }
        Main.say("CLOSED");
    }

    static void subscribe(final Args args) throws Exception
    {
        final AtomicBoolean over = new AtomicBoolean();
        final AtomicBoolean gone = new AtomicBoolean();
        final long[] next = {-1, 0};
        input(over);
        try (Aeron aeron = args.connect();
            Subscription subscription = aeron.addSubscription(
                args.text("channel"),
                args.stream(),
                (image) ->
                {
                    next[0] = -1;
                    Main.say("AVAILABLE session=%d join=%d", image.sessionId(), image.joinPosition());
                },
                (image) ->
                {
                    Main.say("UNAVAILABLE session=%d revoked=%b eos=%b",
                        image.sessionId(), image.isPublicationRevoked(), image.isEndOfStream());
                    gone.set(true);
                }))
        {
            Main.say("SUBSCRIBED");
            final FragmentHandler handler = (buffer, offset, length, header) ->
            {
                final long number = buffer.getLong(offset);
                if (next[0] >= 0 && number != next[0])
                {
                    System.err.println("MISMATCH " + number + " instead of " + next[0]);
                    System.exit(3);
                }
                next[0] = number + 1;
                next[1]++;
            };
            final long count = args.number("count", 1);
            final long deadline = args.deadline();
            boolean received = false;
            while (!over.get() && System.nanoTime() < deadline)
            {
                if (!(received && args.flag("stall") && !gone.get()))
                {
                    subscription.poll(handler, 10);
                }
                if (!received && next[1] >= count)
                {
                    received = true;
                    Main.say("RECEIVED count=%d", next[1]);
                    final String reason = args.text("reject", "");
                    if (!reason.isEmpty())
                    {
                        final Image image = subscription.imageAtIndex(0);
                        image.reject(reason);
                        Main.say("REJECTED");
                    }
                }
                Thread.sleep(1);
            }
        }
        Main.say("CLOSED");
    }
}
