// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.PersistentSubscription;
import io.aeron.archive.client.PersistentSubscriptionListener;
import io.aeron.archive.client.ReplayMerge;
import io.aeron.logbuffer.FragmentHandler;

import java.nio.ByteOrder;

/**
 * Programs that read a recording from its start and then the live stream, through the official archive client. Message n has
 * the number n in its first eight bytes, and its lowest byte in all others; the last message has one byte. They say LIVE when
 * the live stream is joined, and DONE with the number of messages after the last one.
 */
final class Joining
{
    private final long deadline;
    private long received;
    private boolean isOver;
    private boolean isLive;

    private Joining(final Args args)
    {
        deadline = args.deadline();
    }

    private FragmentHandler handler()
    {
        return new FragmentAssembler((buffer, offset, length, header) ->
        {
            if (length == 1)
            {
                isOver = true;
                return;
            }
            final long index = buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN);
            if (index != received)
            {
                throw new IllegalStateException("message " + index + " in place of " + received);
            }
            for (int i = 8; i < length; i++)
            {
                if (buffer.getByte(offset + i) != (byte)index)
                {
                    throw new IllegalStateException("byte " + i + " of message " + index);
                }
            }
            received++;
        });
    }

    /** Says once that the live stream is joined; returns true while there is more to read. */
    private boolean goesOn(final boolean isLiveNow, final String state)
    {
        if (isLiveNow && !isLive)
        {
            isLive = true;
            Main.say("LIVE messages=%d", received);
        }
        if (System.nanoTime() > deadline)
        {
            throw new IllegalStateException("timeout after " + received + " messages: " + state);
        }
        return !isOver;
    }

    private static AeronArchive.Context archive(final Args args)
    {
        return new AeronArchive.Context()
            .aeronDirectoryName(args.text("dir"))
            .controlRequestChannel(args.text("control"))
            .controlResponseChannel(args.text("response"));
    }

    /** A persistent subscription. */
    static void persist(final Args args) throws Exception
    {
        final Joining joining = new Joining(args);
        final FragmentHandler handler = joining.handler();
        final PersistentSubscriptionListener listener = new PersistentSubscriptionListener()
        {
            public void onLiveJoined()
            {
            }

            public void onLiveLeft()
            {
                Main.say("LEFT");
            }

            public void onError(final Exception error)
            {
                Main.say("ERROR %s", error.getMessage());
            }
        };
        try (PersistentSubscription subscription = PersistentSubscription.create(new PersistentSubscription.Context()
            .aeronDirectoryName(args.text("dir"))
            .aeronArchiveContext(archive(args))
            .recordingId(args.number("recording", 0))
            .startPosition(PersistentSubscription.FROM_START)
            .liveChannel(args.text("live"))
            .liveStreamId(args.stream())
            .replayChannel(args.text("replay"))
            .replayStreamId(args.stream() + 1)
            .listener(listener)))
        {
            while (joining.goesOn(subscription.isLive(), "live=" + subscription.isLive()))
            {
                if (subscription.hasFailed())
                {
                    throw subscription.failureReason();
                }
                if (0 == subscription.poll(handler, 10))
                {
                    Thread.yield();
                }
            }
        }
        Main.say("DONE messages=%d live=%s", joining.received, joining.isLive);
    }

    /** A replay that merges with the live stream. */
    static void merge(final Args args) throws Exception
    {
        final Joining joining = new Joining(args);
        final FragmentHandler handler = joining.handler();
        try (AeronArchive client = AeronArchive.connect(archive(args)))
        {
            final Aeron aeron = client.context().aeron();
            final String session = "|session-id=" + args.number("session", 0);
            try (Subscription subscription = aeron.addSubscription(
                "aeron:udp?control-mode=manual" + session, args.stream());
                ReplayMerge merge = new ReplayMerge(
                    subscription, client, "aeron:udp?term-length=64k" + session, args.text("replay"), args.text("live"),
                    args.number("recording", 0), 0))
            {
                while (joining.goesOn(merge.isMerged(), merge.toString()))
                {
                    if (merge.hasFailed())
                    {
                        throw new IllegalStateException("the merge has failed: " + merge);
                    }
                    if (0 == (merge.isMerged() ? subscription.poll(handler, 10) : merge.poll(handler, 10)))
                    {
                        Thread.yield();
                    }
                }
            }
        }
        Main.say("DONE messages=%d live=%s", joining.received, joining.isLive);
    }
}
