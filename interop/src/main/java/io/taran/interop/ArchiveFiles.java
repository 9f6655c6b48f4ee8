// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchiveTool;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** Programs on the files of an official archive, with a driver of its own in {@code dir}. */
final class ArchiveFiles
{
    private static final String REQUESTS = "aeron:ipc?term-length=64k";
    private static final int STREAM = 1001;

    private ArchiveFiles()
    {
    }

    private static ArchivingMediaDriver launch(final Args args)
    {
        final MediaDriver.Context driver = new MediaDriver.Context()
            .aeronDirectoryName(args.text("dir"))
            .threadingMode(ThreadingMode.SHARED)
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true);
        final Archive.Context archive = new Archive.Context()
            .aeronDirectoryName(args.text("dir"))
            .archiveDir(new File(args.text("archive-dir")))
            .controlChannelEnabled(false)
            .localControlChannel(REQUESTS)
            .archiveClientContext(new AeronArchive.Context().controlResponseChannel("aeron:udp?endpoint=localhost:0"))
            .replicationChannel("aeron:udp?endpoint=localhost:0")
            .segmentFileLength(128 * 1024)
            .threadingMode(ArchiveThreadingMode.SHARED);
        final String checksum = args.text("checksum", "");
        if (!checksum.isEmpty())
        {
            archive.recordChecksum(io.aeron.archive.checksum.Checksums.newInstance(checksum));
        }
        return ArchivingMediaDriver.launch(driver, archive);
    }

    private static AeronArchive connect(final Args args)
    {
        return AeronArchive.connect(new AeronArchive.Context()
            .aeronDirectoryName(args.text("dir"))
            .controlRequestChannel(REQUESTS)
            .controlResponseChannel("aeron:ipc"));
    }

    /**
     * Records {@code count} messages of a stream and stops, then as many of another one without a stop. Says RECORDED with
     * both positions, and ends when standard input is closed.
     */
    static void record(final Args args) throws Exception
    {
        try (ArchivingMediaDriver ignored = launch(args); AeronArchive client = connect(args))
        {
            final long[] positions = new long[2];
            final List<Publication> publications = new ArrayList<>();
            for (int i = 0; i < 2; i++)
            {
                final String channel = "aeron:ipc?term-length=64k|alias=stream-" + i;
                client.startRecording(channel, STREAM + i, SourceLocation.LOCAL);
                final Publication publication = client.context().aeron().addExclusivePublication(channel, STREAM + i);
                publications.add(publication);
                final UnsafeBuffer message = new UnsafeBuffer(new byte[1000]);
                message.setMemory(0, 1000, (byte)7);
                for (int n = 0; n < args.number("count", 100);)
                {
                    if (publication.offer(message, 0, 100 + n % 900) > 0)
                    {
                        n++;
                    }
                    else
                    {
                        Thread.yield();
                    }
                }
                while (client.getRecordingPosition(i) < publication.position())
                {
                    Thread.yield();
                }
                positions[i] = publication.position();
                if (i == 0)
                {
                    client.stopRecording(channel, STREAM);
                    while (client.getStopPosition(0) < 0)
                    {
                        Thread.yield();
                    }
                }
            }
            Main.say("RECORDED first=%d second=%d", positions[0], positions[1]);
            Main.awaitEndOfInput();
        }
    }

    /**
     * Verifies all segment files of {@code archive-dir} with the official tool, then starts the official archive on it and
     * replays each recording. Says VERIFIED, a line RECORDING for each, and DONE.
     */
    static void check(final Args args) throws Exception
    {
        final File directory = new File(args.text("archive-dir"));
        final String checksum = args.text("checksum", "");
        final Set<ArchiveTool.VerifyOption> options = checksum.isEmpty() ?
            EnumSet.of(ArchiveTool.VerifyOption.VERIFY_ALL_SEGMENT_FILES) :
            EnumSet.allOf(ArchiveTool.VerifyOption.class);
        final boolean verified = ArchiveTool.verify(
            System.out, directory, options, checksum.isEmpty() ? null : checksum, (file) -> false);
        Main.say("VERIFIED ok=%s", verified);
        try (ArchivingMediaDriver ignored = launch(args); AeronArchive client = connect(args))
        {
            final List<long[]> recordings = new ArrayList<>();
            client.listRecordings(0, 100, (session, correlation, id, startTime, stopTime, start, stop, initialTermId,
                segmentLength, termLength, mtu, sessionId, streamId, stripped, original, source) ->
                recordings.add(new long[]{ id, start, stop }));
            for (final long[] recording : recordings)
            {
                long bytes = 0;
                if (recording[2] > recording[1])
                {
                    bytes = replay(client, recording);
                }
                Main.say("RECORDING id=%d start=%d stop=%d payload=%d", recording[0], recording[1], recording[2], bytes);
            }
        }
        Main.say("DONE");
    }

    private static long replay(final AeronArchive client, final long[] recording)
    {
        final long[] bytes = new long[1];
        try (Subscription replay = client.replay(
            recording[0], recording[1], recording[2] - recording[1], "aeron:ipc", 7000 + (int)recording[0]))
        {
            while (replay.imageCount() == 0)
            {
                Thread.yield();
            }
            final Image image = replay.imageAtIndex(0);
            while (image.position() < recording[2] && !image.isClosed())
            {
                if (0 == image.poll((buffer, offset, length, header) -> bytes[0] += length, 100))
                {
                    Thread.yield();
                }
            }
        }
        return bytes[0];
    }
}
