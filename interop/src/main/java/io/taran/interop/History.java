// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Aeron;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.Counter;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.archive.client.RecordingSubscriptionDescriptorConsumer;
import io.aeron.archive.client.ReplayParams;
import io.aeron.archive.client.ReplicationParams;
import io.aeron.archive.codecs.RecordingSignal;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.security.CredentialsSupplier;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.charset.StandardCharsets;

/** Requests that change recordings, with the official archive client. Frames have 1 KiB, and 64 of them fill a segment. */
final class History
{
    private static final int STREAM_ID = 1001;
    private static final int REPLAY_STREAM_ID = 1002;
    private static final int SEGMENT = 64 * 1024;
    private static final int FRAME = 1024;
    private static final String CHANNEL = "aeron:ipc?term-length=64k";

    private final Args args;
    private final long deadline;
    private final AeronArchive archive;
    private final UnsafeBuffer message = new UnsafeBuffer(new byte[FRAME - 32]);
    private long deleted = -1;
    private long stopped = -1;
    private long extended = -1;
    private long started = -1;

    private History(final Args args)
    {
        this.args = args;
        deadline = args.deadline();
        archive = connect(args, null, (session, correlation, recording, subscription, position, signal) ->
        {
            if (signal == RecordingSignal.DELETE)
            {
                deleted = recording;
            }
            else if (signal == RecordingSignal.STOP)
            {
                stopped = recording;
            }
            else if (signal == RecordingSignal.EXTEND)
            {
                extended = recording;
            }
            else if (signal == RecordingSignal.START)
            {
                started = recording;
            }
        });
    }

    private static AeronArchive connect(
        final Args args,
        final CredentialsSupplier credentials,
        final io.aeron.archive.client.RecordingSignalConsumer signals)
    {
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args.text("dir"))
            .controlRequestChannel(args.text("control"))
            .controlResponseChannel(args.text("response"));
        if (credentials != null)
        {
            context.credentialsSupplier(credentials);
        }
        if (signals != null)
        {
            context.recordingSignalConsumer(signals);
        }
        return AeronArchive.connect(context);
    }

    /** Changes recordings in all ways; says DONE with what was there after each step. */
    static void run(final Args args)
    {
        final History history = new History(args);
        try (AeronArchive archive = history.archive)
        {
            final long first = history.recordAndExtend();
            history.changeSegments(first);
            final long merged = history.migrate();
            history.ask(merged);
            history.refuse(merged);
            history.bounded(first);
            history.respond(first);
            history.purge(first);
        }
        Main.say("DONE");
    }

    /** Records three and a half segments, in two parts. */
    private long recordAndExtend()
    {
        final int termId;
        archive.startRecording(CHANNEL, STREAM_ID, SourceLocation.LOCAL);
        try (ExclusivePublication publication = archive.context().aeron().addExclusivePublication(CHANNEL, STREAM_ID))
        {
            termId = publication.initialTermId();
            publish(publication, 100);
            await(() -> started >= 0, "START");
            awaitRecorded(started, publication.position());
        }
        final long id = started;
        archive.stopRecording(CHANNEL, STREAM_ID);
        await(() -> stopped == id, "STOP");
        describe("recorded", id);
        refusal("extend-elsewhere", () -> extendAt(id, termId, 99 * FRAME));
        extended = -1;
        stopped = -1;
        archive.extendRecording(id, CHANNEL, STREAM_ID, SourceLocation.LOCAL);
        refusal("extend-active", () ->
            archive.extendRecording(id, CHANNEL, STREAM_ID, SourceLocation.LOCAL));
        try (ExclusivePublication publication = continued(termId, 100 * FRAME))
        {
            publish(publication, 124);
            await(() -> extended == id, "EXTEND");
            awaitRecorded(id, publication.position());
            refusal("truncate-active", () -> archive.truncateRecording(id, 0));
            refusal("purge-active", () -> archive.purgeRecording(id));
        }
        archive.stopRecording(CHANNEL, STREAM_ID);
        await(() -> stopped == id, "STOP");
        describe("extended", id);
        Main.say("REPLAYED %d", replayAll(id, 0, 224 * FRAME));
        return id;
    }

    /** Extends at another position, which the archive reports by an error of its own. */
    private void extendAt(final long id, final int termId, final long position)
    {
        archive.extendRecording(id, CHANNEL, STREAM_ID, SourceLocation.LOCAL);
        try (ExclusivePublication publication = continued(termId, position))
        {
            while (true)
            {
                archive.checkForErrorResponse();
                check("an error");
            }
        }
        finally
        {
            archive.stopRecording(CHANNEL, STREAM_ID);
        }
    }

    private ExclusivePublication continued(final int termId, final long position)
    {
        final String channel = new ChannelUriStringBuilder("aeron:ipc")
            .initialPosition(position, termId, SEGMENT)
            .build();
        return archive.context().aeron().addExclusivePublication(channel, STREAM_ID);
    }

    private void changeSegments(final long id)
    {
        refusal("detach-inside", () -> archive.detachSegments(id, SEGMENT + FRAME));
        refusal("detach-nothing", () -> archive.detachSegments(id, 0));
        archive.detachSegments(id, 2 * SEGMENT);
        describe("detached", id);
        refusal("replay-detached", () ->
            archive.startReplay(id, SEGMENT, 1, "aeron:ipc", REPLAY_STREAM_ID));
        Main.say("ATTACHED %d", archive.attachSegments(id));
        describe("attached", id);
        Main.say("ATTACHED %d", archive.attachSegments(id));
        archive.detachSegments(id, SEGMENT);
        deleted = -1;
        Main.say("DELETED %d", archive.deleteDetachedSegments(id));
        await(() -> deleted == id, "DELETE");
        refusal("truncate-unaligned", () -> archive.truncateRecording(id, 2 * SEGMENT + 1));
        refusal("truncate-before", () -> archive.truncateRecording(id, 0));
        refusal("truncate-beyond", () -> archive.truncateRecording(id, 4 * SEGMENT));
        deleted = -1;
        Main.say("TRUNCATED %d", archive.truncateRecording(id, 3 * SEGMENT + 2 * FRAME));
        await(() -> deleted == id, "DELETE");
        describe("truncated", id);
        deleted = -1;
        Main.say("TRUNCATED %d", archive.truncateRecording(id, 3 * SEGMENT));
        await(() -> deleted == id, "DELETE");
        describe("truncated", id);
        Main.say("REPLAYED %d", replayAll(id, SEGMENT, 2 * SEGMENT));
        deleted = -1;
        Main.say("PURGED %d", archive.purgeSegments(id, 2 * SEGMENT));
        await(() -> deleted == id, "DELETE");
        describe("purged", id);
        refusal("purge-all", () -> archive.purgeSegments(id, 4 * SEGMENT));
    }

    /** Records one stream in two recordings, which become one. */
    private long migrate()
    {
        final int termId = 7;
        final long before = record(termId, 0, 64);
        final long after = record(termId, SEGMENT, 96);
        final long apart = record(termId, 5 * SEGMENT, 1);
        refusal("migrate-apart", () -> archive.migrateSegments(apart, before));
        refusal("migrate-self", () -> archive.migrateSegments(4_711, before));
        deleted = -1;
        Main.say("MIGRATED %d", archive.migrateSegments(before, after));
        await(() -> deleted == before, "DELETE");
        describe("migrated", after);
        describe("emptied", before);
        Main.say("REPLAYED %d", replayAll(after, 0, 160 * FRAME));
        return after;
    }

    /** Requests that read, and a recorded publication. */
    private void ask(final long id)
    {
        Main.say("ARCHIVE %s", archive.archiveId() != Aeron.NULL_VALUE);
        archive.updateChannel(id, "aeron:ipc?alias=renamed");
        final RecordingDescriptorConsumer print = (session, correlation, recording, startTime, stopTime, start, stop,
            initialTermId, segmentLength, termLength, mtu, sessionId, stream, stripped, original, source) ->
            Main.say("DESCRIPTOR id=%d start=%d stop=%d term=%d segment=%d mtu=%d stream=%d %s %s", recording, start,
                stop, termLength, segmentLength, mtu, stream, stripped, original);
        Main.say("LISTED %d", archive.listRecording(id, print));
        Main.say("LISTED %d", archive.listRecordings(0, 100, print));
        Main.say("LISTED %d", archive.listRecordings(id, 1, print));
        Main.say("LISTED %d", archive.listRecordings(1_000, 1, print));
        Main.say("LISTED %d", archive.listRecordingsForUri(0, 100, "renamed", STREAM_ID, print));
        Main.say("LISTED %d", archive.listRecordingsForUri(0, 100, "renamed", STREAM_ID + 1, print));
        archive.stopAllReplays(id);
        archive.stopAllReplays(Aeron.NULL_VALUE);
        archive.stopReplay(4_711);
        final Publication publication = archive.addRecordedPublication(CHANNEL, STREAM_ID + 2);
        while (publication.offer(message) <= 0)
        {
            check("publication");
        }
        subscriptions(0, 10, "ipc", true);
        subscriptions(0, 10, "", false);
        subscriptions(0, 10, "udp", false);
        subscriptions(0, 1, "", false);
        subscriptions(1, 1, "", false);
        subscriptions(-1, 1, "", false);
        archive.stopRecording(publication);
        refusal("stop-publication", () -> archive.stopRecording(publication));
        Main.say("TRIED %s", archive.tryStopRecording(CHANNEL, STREAM_ID));
        Main.say("TRIED %s", archive.tryStopRecording(4_711));
        Main.say("TRIED %s", archive.tryStopReplication(4_711));
        subscriptions(0, 10, "", false);
        publication.close();
    }

    private void subscriptions(final int index, final int count, final String fragment, final boolean isOfStream)
    {
        final RecordingSubscriptionDescriptorConsumer print = (session, correlation, subscription, stream, channel) ->
            Main.say("SUBSCRIPTION stream=%d %s", stream, channel.replaceAll("session-id=-?[0-9]+", "session-id"));
        Main.say("LISTED %d", archive.listRecordingSubscriptions(index, count, fragment, STREAM_ID + 2, isOfStream, print));
    }

    /** Requests with wrong parameters, for a stopped recording and an active one. */
    private void refuse(final long id)
    {
        final long end = archive.getStopPosition(id);
        final String replay = "aeron:ipc";
        final String response = "aeron:udp?control-mode=response|control=127.0.0.1:9";
        final String control = args.text("control");
        started = -1;
        stopped = -1;
        try (ExclusivePublication publication = archive.addRecordedExclusivePublication(CHANNEL, STREAM_ID + 2))
        {
            publish(publication, 4);
            await(() -> started >= 0, "START");
            final long active = started;
            awaitRecorded(active, publication.position());
            Main.say("ACTIVE %d %d", archive.getRecordingPosition(active), archive.getStopPosition(active));
            refusal("replay-unaligned", () -> archive.startReplay(id, 33, 10, replay, REPLAY_STREAM_ID));
            refusal("replay-inside", () -> archive.startReplay(id, 64, 10, replay, REPLAY_STREAM_ID));
            refusal("replay-at-end", () -> archive.startReplay(id, end, 10, replay, REPLAY_STREAM_ID));
            refusal("replay-negative", () -> archive.startReplay(id, 0, -7, replay, REPLAY_STREAM_ID));
            refusal("replay-ahead", () -> archive.startReplay(active, 1 << 20, 10, replay, REPLAY_STREAM_ID));
            refusal("replay-short", () -> archive.startReplay(
                id, replay, REPLAY_STREAM_ID, new ReplayParams().position(0).fileIoMaxLength(64)));
            refusal("bounded-by-nothing", () -> archive.startBoundedReplay(
                id, 0, 10, 20_000, replay, REPLAY_STREAM_ID));
            refusal("replay-without-token", () -> archive.startReplay(id, 0, 10, response, REPLAY_STREAM_ID));
            refusal("replicate-to-unknown", () -> archive.replicate(
                id, 10, control, new ReplicationParams().dstRecordingId(4_711)));
            refusal("replicate-to-active", () -> archive.replicate(
                id, 10, control, new ReplicationParams().dstRecordingId(active)));
            refusal("replicate-live-response", () -> archive.replicate(id, 10, control, new ReplicationParams()
                .replicationChannel(response).liveDestination("aeron:udp?endpoint=127.0.0.1:9")));
            refusal("replicate-tagged-response", () -> archive.replicate(id, 10, control, new ReplicationParams()
                .replicationChannel(response).channelTagId(7).subscriptionTagId(8)));
            refusal("stop-replication", () -> archive.stopReplication(4_711));
            refusal("update-unknown", () -> archive.updateChannel(4_711, CHANNEL));
            refusal("extend-stream", () -> archive.extendRecording(id, CHANNEL, 77, SourceLocation.LOCAL));
            refusal("extend-running", () -> archive.extendRecording(
                active, CHANNEL, STREAM_ID + 2, SourceLocation.LOCAL));
            refusal("migrate-active", () -> archive.migrateSegments(active, id));
            refusal("attach-unknown", () -> archive.attachSegments(4_711));
            refusal("find-negative", () -> archive.findLastMatchingRecording(-1, "", STREAM_ID, 0));
            refusal("start-nowhere", () -> archive.startRecording("aeron:tcp", STREAM_ID, SourceLocation.LOCAL));
            Main.say("TRIED %s", archive.tryStopRecordingByIdentity(active));
            await(() -> stopped == active, "STOP");
            Main.say("TRIED %s", archive.tryStopRecordingByIdentity(active));
            describe("stopped", active);
        }
    }

    private long record(final int termId, final long position, final int count)
    {
        started = -1;
        archive.startRecording(CHANNEL, STREAM_ID, SourceLocation.LOCAL);
        try (ExclusivePublication publication = continued(termId, position))
        {
            publish(publication, count);
            await(() -> started >= 0, "START");
            awaitRecorded(started, publication.position());
        }
        stopped = -1;
        archive.stopRecording(CHANNEL, STREAM_ID);
        final long id = started;
        await(() -> stopped == id, "STOP");
        return id;
    }

    /** Replays up to a counter, which moves. */
    private void bounded(final long id)
    {
        final Aeron aeron = archive.context().aeron();
        try (Counter limit = aeron.addCounter(4_711, "limit"))
        {
            limit.set(2 * SEGMENT + 3 * FRAME);
            refusal("bounded-beyond", () -> archive.startBoundedReplay(
                id, 2 * SEGMENT + 4 * FRAME, FRAME, limit.id(), "aeron:ipc", REPLAY_STREAM_ID));
            final ReplayParams params = new ReplayParams()
                .position(2 * SEGMENT)
                .length(8 * FRAME)
                .boundingLimitCounterId(limit.id());
            try (Subscription replay = archive.replay(id, "aeron:ipc", REPLAY_STREAM_ID, params))
            {
                final int[] received = {0};
                final FragmentHandler handler = (buffer, offset, length, header) -> received[0]++;
                while (received[0] < 3)
                {
                    replay.poll(handler, 10);
                    check("bounded replay");
                }
                Main.say("BOUNDED %d", replay.imageAtIndex(0).position());
                limit.set(3 * SEGMENT);
                while (!replay.imageAtIndex(0).isEndOfStream())
                {
                    replay.poll(handler, 10);
                    check("rest of the bounded replay");
                }
                Main.say("BOUNDED %d", replay.imageAtIndex(0).position());
            }
        }
    }

    /** Replays to a response channel, by a token. */
    private void respond(final long id)
    {
        final ReplayParams params = new ReplayParams().position(2 * SEGMENT).length(4 * FRAME);
        try (Subscription replay = archive.replay(id, args.text("answers"), REPLAY_STREAM_ID, params))
        {
            final int[] received = {0};
            final FragmentHandler handler = (buffer, offset, length, header) -> received[0]++;
            while (received[0] < 4)
            {
                replay.poll(handler, 10);
                archive.checkForErrorResponse();
                check("replay to a response channel");
            }
            Main.say("RESPONDED %d", received[0]);
        }
    }

    private void purge(final long id)
    {
        deleted = -1;
        Main.say("PURGED %d", archive.purgeRecording(id));
        await(() -> deleted == id, "DELETE");
        refusal("purged", () -> archive.getStartPosition(id));
    }

    /** Connects with credentials that the archive challenges; then asks, and prints the code of a refusal. */
    static void authenticate(final Args args)
    {
        final byte[] credentials = args.text("credentials").getBytes(StandardCharsets.US_ASCII);
        final CredentialsSupplier supplier = new CredentialsSupplier()
        {
            public byte[] encodedCredentials()
            {
                return credentials;
            }

            public byte[] onChallenge(final byte[] challenge)
            {
                Main.say("CHALLENGED %s", new String(challenge, StandardCharsets.US_ASCII));
                return args.text("answer").getBytes(StandardCharsets.US_ASCII);
            }
        };
        try (AeronArchive archive = connect(args, supplier, null))
        {
            Main.say("CONNECTED %d", archive.archiveId());
            refusal("start", () -> archive.startRecording(CHANNEL, STREAM_ID, SourceLocation.LOCAL));
        }
        catch (final ArchiveException refused)
        {
            Main.say("REFUSED connect code=%d", refused.errorCode());
        }
    }

    private void publish(final ExclusivePublication publication, final int count)
    {
        for (int i = 0; i < count; i++)
        {
            while (publication.offer(message) <= 0)
            {
                check("publication");
            }
        }
    }

    /** Returns the position at which the replay ended. */
    private long replayAll(final long id, final long position, final long length)
    {
        try (Subscription replay = archive.replay(id, position, length, "aeron:ipc", REPLAY_STREAM_ID))
        {
            final FragmentHandler handler = (buffer, offset, bytes, header) ->
            {
                if (bytes != message.capacity())
                {
                    throw new IllegalStateException("length " + bytes);
                }
            };
            while (replay.imageCount() == 0 || !replay.imageAtIndex(0).isEndOfStream())
            {
                replay.poll(handler, 10);
                archive.checkForErrorResponse();
                check("replay");
            }
            return replay.imageAtIndex(0).position();
        }
    }

    private void awaitRecorded(final long id, final long position)
    {
        await(() -> archive.getMaxRecordedPosition(id) >= position, "position " + position);
    }

    private void describe(final String state, final long id)
    {
        Main.say("STATE %s start=%d stop=%d", state, archive.getStartPosition(id), archive.getStopPosition(id));
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

    private void await(final java.util.function.BooleanSupplier condition, final String what)
    {
        while (!condition.getAsBoolean())
        {
            archive.pollForRecordingSignals();
            check(what);
        }
    }

    private void check(final String what)
    {
        if (System.nanoTime() > deadline)
        {
            throw new IllegalStateException("timed out: " + what);
        }
        Thread.yield();
    }
}
