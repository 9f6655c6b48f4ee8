// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.client.RecordingSignalConsumer;
import io.aeron.archive.client.ReplicationParams;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.FragmentAssembler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

/** Programs that use an archive through the official archive client. */
final class Recordings
{
    private static final int STREAM_ID = 1001;
    private static final int REPLAY_STREAM_ID = 1002;

    private Recordings()
    {
    }

    private static AeronArchive connect(final Args args, final RecordingSignalConsumer signals)
    {
        return AeronArchive.connect(new AeronArchive.Context()
            .aeronDirectoryName(args.text("dir"))
            .controlRequestChannel(args.text("control"))
            .controlResponseChannel(args.text("response"))
            .recordingSignalConsumer(signals)
            .clientName("interop"));
    }

    /** Records messages on {@code channel}, checks positions and descriptors, and replays them. */
    static void record(final Args args) throws Exception
    {
        final long deadline = args.deadline();
        final String channel = args.text("channel");
        final int count = (int)args.number("count", 10_000);
        final int[] lengths = args.lengths();
        final RecordingSignalConsumer signals =
            (session, correlation, recording, subscription, position, signal) ->
                Main.say("SIGNAL %s recording=%d position=%d", signal, recording, position);
        try (AeronArchive archive = connect(args, signals))
        {
            Main.say("CONNECTED archive=%d", archive.archiveId());
            final Aeron aeron = archive.context().aeron();
            final long subscription = archive.startRecording(channel, STREAM_ID, SourceLocation.LOCAL);
            final long recording;
            final long end;
            try (Publication publication = aeron.addExclusivePublication(channel, STREAM_ID))
            {
                final CountersReader counters = aeron.countersReader();
                int counter;
                while ((counter = RecordingPos.findCounterIdBySession(
                    counters, publication.sessionId(), archive.archiveId())) == CountersReader.NULL_COUNTER_ID)
                {
                    check(deadline, "no position counter");
                }
                recording = RecordingPos.getRecordingId(counters, counter);
                publish(publication, lengths, 0, count, deadline);
                end = publication.position();
                while (counters.getCounterValue(counter) < end)
                {
                    check(deadline, "recorded up to " + counters.getCounterValue(counter) + " of " + end);
                }
                require(archive.getRecordingPosition(recording) == end, "recorded position");
                require(archive.getStopPosition(recording) == AeronArchive.NULL_POSITION, "stop position");
                require(archive.listRecordingSubscriptions(
                    0, 10, "", STREAM_ID, true, (s, c, id, stream, stripped) ->
                        require(id == subscription && stream == STREAM_ID, "subscription " + stripped)) == 1,
                    "subscriptions");
            }
            if (args.flag("stop"))
            {
                archive.stopRecording(subscription);
            }
            while (archive.getStopPosition(recording) != end)
            {
                archive.pollForRecordingSignals();
                check(deadline, "stopped at " + archive.getStopPosition(recording));
            }
            require(archive.getRecordingPosition(recording) == AeronArchive.NULL_POSITION, "position when stopped");
            require(archive.getMaxRecordedPosition(recording) == end, "max recorded position");
            require(archive.getStartPosition(recording) == 0, "start position");
            final int found = archive.listRecording(recording,
                (session, correlation, id, startTime, stopTime, start, stop, initialTermId, segment, term, mtu,
                    sessionId, stream, stripped, original, source) ->
                    require(id == recording && start == 0 && stop == end && stream == STREAM_ID &&
                        stopTime >= startTime && startTime > 0 && original.equals(channel), "descriptor"));
            require(found == 1, "recording listed");
            require(archive.findLastMatchingRecording(0, channel.substring(0, 9), STREAM_ID, -1) ==
                Aeron.NULL_VALUE, "no match of the session");
            replay(args, archive, recording, end, lengths, count, deadline);
            Main.say("RECORDED recording=%d position=%d", recording, end);
        }
    }

    private static void replay(
        final Args args, final AeronArchive archive, final long recording, final long end, final int[] lengths,
        final int count, final long deadline)
    {
        final int[] received = {0};
        final UnsafeBuffer expected = new UnsafeBuffer(new byte[1 << 20]);
        final FragmentHandler handler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final int wanted = lengths[received[0] % lengths.length];
            require(length == wanted, "length " + length + " of message " + received[0]);
            Pattern.fill(expected, length, 0, received[0], false);
            for (int i = 0; i < length; i++)
            {
                require(buffer.getByte(offset + i) == expected.getByte(i), "byte " + i + " of " + received[0]);
            }
            received[0]++;
        });
        try (Subscription replay = archive.replay(recording, 0, end, args.text("replay"), REPLAY_STREAM_ID))
        {
            while (received[0] < count)
            {
                replay.poll(handler, 100);
                archive.checkForErrorResponse();
                check(deadline, "replayed " + received[0] + " of " + count);
            }
            while (replay.imageCount() > 0 && !replay.imageAtIndex(0).isEndOfStream())
            {
                check(deadline, "no end of the replay");
            }
        }
        Main.say("REPLAYED messages=%d", received[0]);
    }

    private static void publish(
        final Publication publication, final int[] lengths, final int from, final int to, final long deadline)
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[1 << 20]);
        for (int n = from; n < to; n++)
        {
            final int length = lengths[n % lengths.length];
            Pattern.fill(buffer, length, 0, n, false);
            while (publication.offer(buffer, 0, length) <= 0)
            {
                check(deadline, "sent " + n + " of " + to);
            }
        }
    }

    /** Makes requests with wrong parameters; prints the code of each answer. */
    static void refused(final Args args)
    {
        try (AeronArchive archive = connect(args, null))
        {
            refusal("start-channel", () -> archive.startRecording("wrong", STREAM_ID, SourceLocation.LOCAL));
            final String channel = args.text("channel");
            archive.startRecording(channel, STREAM_ID, SourceLocation.LOCAL);
            refusal("start-twice", () -> archive.startRecording(channel, STREAM_ID, SourceLocation.LOCAL));
            archive.stopRecording(channel, STREAM_ID);
            refusal("stop-twice", () -> archive.stopRecording(channel, STREAM_ID));
            refusal("stop-subscription", () -> archive.stopRecording(4_711));
            refusal("stop-recording", () -> archive.tryStopRecordingByIdentity(4_711));
            refusal("extend", () -> archive.extendRecording(4_711, channel, STREAM_ID, SourceLocation.LOCAL));
            refusal("start-position", () -> archive.getStartPosition(4_711));
            refusal("recording-position", () -> archive.getRecordingPosition(-1));
            refusal("stop-position", () -> archive.getStopPosition(4_711));
            refusal("max-position", () -> archive.getMaxRecordedPosition(4_711));
            refusal("find", () -> archive.findLastMatchingRecording(-1, "", STREAM_ID, 0));
            refusal("replay", () -> archive.startReplay(4_711, 0, 10, "aeron:ipc", REPLAY_STREAM_ID));
            refusal("bounded", () -> archive.startBoundedReplay(4_711, 0, 10, 1_000_000, "aeron:ipc", REPLAY_STREAM_ID));
            refusal("truncate", () -> archive.truncateRecording(4_711, 0));
            refusal("purge", () -> archive.purgeRecording(4_711));
            refusal("detach", () -> archive.detachSegments(4_711, 0));
            refusal("delete-detached", () -> archive.deleteDetachedSegments(4_711));
            refusal("purge-segments", () -> archive.purgeSegments(4_711, 0));
            require(archive.listRecordings(0, 10, Recordings::unexpected) == 0, "no recordings");
            require(archive.listRecordingsForUri(0, 10, "x", 1, Recordings::unexpected) == 0, "no recordings");
            require(archive.listRecording(4_711, Recordings::unexpected) == 0, "no recording");
            archive.stopReplay(4_711);
            Main.say("DONE");
        }
    }

    /**
     * Replicates {@code recording} of the archive at {@code source}, to {@code destination} if that is not -1; prints the
     * signals, to the one named {@code last}, and the stop position.
     */
    static void replicate(final Args args)
    {
        final long deadline = args.deadline();
        final long[] replication = {Aeron.NULL_VALUE};
        final long[] copy = {Aeron.NULL_VALUE};
        final boolean[] ended = {false};
        final String last = args.text("last");
        final RecordingSignalConsumer signals =
            (session, correlation, recording, subscription, position, signal) ->
            {
                Main.say("SIGNAL %s", signal);
                require(replication[0] == Aeron.NULL_VALUE || replication[0] == correlation, "correlation id");
                copy[0] = recording == Aeron.NULL_VALUE ? copy[0] : recording;
                ended[0] |= signal.name().equals(last);
            };
        try (AeronArchive archive = connect(args, signals))
        {
            final ReplicationParams params = new ReplicationParams()
                .dstRecordingId(args.number("destination", Aeron.NULL_VALUE))
                .replicationChannel(args.text("channel", ""));
            replication[0] = archive.replicate(
                args.number("recording", 0), 10, args.text("source"), params);
            while (!ended[0])
            {
                archive.pollForRecordingSignals();
                check(deadline, "replication");
            }
            Main.say("REPLICATED recording=%d stop=%d", copy[0], archive.getStopPosition(copy[0]));
            try
            {
                archive.stopReplication(replication[0]);
            }
            catch (final ArchiveException refused)
            {
                Main.say("REFUSED stop code=%d", refused.errorCode());
            }
        }
    }

    private static void unexpected(
        final long session, final long correlation, final long id, final long startTime, final long stopTime,
        final long start, final long stop, final int initialTermId, final int segment, final int term, final int mtu,
        final int sessionId, final int stream, final String stripped, final String original, final String source)
    {
        throw new IllegalStateException("unexpected recording " + id);
    }

    private static void refusal(final String name, final Runnable request)
    {
        try
        {
            request.run();
            Main.say("REFUSED %s code=none", name);
        }
        catch (final ArchiveException refused)
        {
            Main.say("REFUSED %s code=%d", name, refused.errorCode());
        }
    }

    private static void check(final long deadline, final String state)
    {
        if (System.nanoTime() > deadline)
        {
            throw new IllegalStateException("timed out: " + state);
        }
        Thread.yield();
    }

    private static void require(final boolean holds, final String what)
    {
        if (!holds)
        {
            throw new IllegalStateException("wrong: " + what);
        }
    }
}
