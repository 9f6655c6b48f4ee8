// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusteredMediaDriver;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;

/** Official members of a cluster. */
final class Members
{
    private Members()
    {
    }

    /**
     * An official member with driver, archive and a container with a service that echoes.
     *
     * The directories of driver, archive and cluster are {@code dir}, {@code archive-dir} and {@code cluster-dir}. The container
     * uses the driver's directory; with {@code containers=true} there is no container in this process. {@code threading} and
     * {@code archive-threading} are the threading modes of driver and archive (SHARED). The service has {@code state} bytes
     * beside its count. Other settings are {@code -Daeron...} properties.
     *
     * It says READY, ROLE with each change, STARTED with the count of the snapshot, and SNAPSHOT. It ends when standard input is
     * closed, or the cluster is shut down.
     */
    static void run(final Args args) throws Exception
    {
        final String dir = args.text("dir");
        final File archiveDir = new File(args.text("archive-dir"));
        final File clusterDir = new File(args.text("cluster-dir"));
        final ShutdownSignalBarrier ended = new ShutdownSignalBarrier();
        final MediaDriver.Context driver = new MediaDriver.Context()
            .aeronDirectoryName(dir)
            .threadingMode(ThreadingMode.valueOf(args.text("threading", "SHARED")))
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true);
        final Archive.Context archive = new Archive.Context()
            .aeronDirectoryName(dir)
            .archiveDir(archiveDir)
            .threadingMode(ArchiveThreadingMode.valueOf(args.text("archive-threading", "SHARED")));
        final AeronArchive.Context local = new AeronArchive.Context()
            .aeronDirectoryName(dir)
            .controlRequestChannel("aeron:ipc?term-length=64k")
            .controlResponseChannel("aeron:ipc?term-length=64k");
        final ConsensusModule.Context module = new ConsensusModule.Context()
            .aeronDirectoryName(dir)
            .clusterDir(clusterDir)
            .archiveContext(local.clone())
            .errorHandler(error -> Main.say("ERROR %s", error.toString().lines().findFirst().orElse("")))
            .terminationHook(ended::signalAll);
        final ClusteredServiceContainer.Context container = new ClusteredServiceContainer.Context()
            .aeronDirectoryName(dir)
            .clusterDir(clusterDir)
            .archiveContext(local.clone())
            .clusteredService(new Echo((int)args.number("state", 0)))
            .errorHandler(error -> Main.say("ERROR service %s", error.toString().lines().findFirst().orElse("")))
            .terminationHook(ended::signalAll);
        try (ClusteredMediaDriver member = ClusteredMediaDriver.launch(driver, archive, module);
            ClusteredServiceContainer ignored =
                args.flag("containers") ? null : ClusteredServiceContainer.launch(container))
        {
            Main.say("READY member=%d", member.consensusModule().context().clusterMemberId());
            final Thread waiter = new Thread(() ->
            {
                try
                {
                    Main.awaitEndOfInput();
                }
                catch (final java.io.IOException ignoredToo)
                {
                    // The end of the input, too.
                }
                ended.signalAll();
            });
            waiter.setDaemon(true);
            waiter.start();
            ended.await();
        }
        Main.say("CLOSED");
    }

    /** Sends each message back. Its snapshot is the number of messages, then bytes that stand for the state of an application. */
    static final class Echo implements ClusteredService
    {
        /** Bytes of state in a message of the snapshot. */
        private static final int FRAME = 32 * 1024;
        private final int state;
        private final IdleStrategy idle = new BackoffIdleStrategy();
        private Cluster cluster;
        private long count;
        private long restored;

        Echo(final int state)
        {
            this.state = state;
        }

        public void onStart(final Cluster cluster, final Image snapshot)
        {
            this.cluster = cluster;
            final FragmentAssembler restore = new FragmentAssembler((buffer, offset, length, header) ->
            {
                count = restored == 0 ? buffer.getLong(offset) : count;
                restored += length;
            });
            while (snapshot != null && !snapshot.isEndOfStream())
            {
                cluster.idleStrategy().idle(snapshot.poll(restore, 10));
            }
            Main.say("STARTED count=%d snapshot=%b", count, snapshot != null);
        }

        public void onSessionOpen(final ClientSession session, final long timestamp)
        {
            Main.say("OPEN %d", session.id());
        }

        public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
        {
            Main.say("CLOSE %d %s", session.id(), reason);
        }

        public void onSessionMessage(
            final ClientSession session,
            final long timestamp,
            final DirectBuffer buffer,
            final int offset,
            final int length,
            final Header header)
        {
            count++;
            if (session != null)
            {
                idle.reset();
                while (session.offer(buffer, offset, length) < 0 && !session.isClosing() &&
                    cluster.role() == Cluster.Role.LEADER)
                {
                    cluster.idleStrategy().idle();
                }
            }
        }

        public void onTimerEvent(final long correlationId, final long timestamp)
        {
        }

        public void onTakeSnapshot(final ExclusivePublication snapshot)
        {
            final UnsafeBuffer buffer = new UnsafeBuffer(new byte[FRAME]);
            buffer.putLong(0, count);
            write(snapshot, buffer, 8);
            for (int left = state; left > 0; left -= FRAME)
            {
                write(snapshot, buffer, Math.min(left, FRAME));
            }
            Main.say("SNAPSHOT count=%d", count);
        }

        private void write(final ExclusivePublication snapshot, final UnsafeBuffer buffer, final int length)
        {
            while (snapshot.offer(buffer, 0, length) < 0)
            {
                cluster.idleStrategy().idle();
            }
        }

        public void onRoleChange(final Cluster.Role role)
        {
            Main.say("ROLE %s", role);
        }

        public void onTerminate(final Cluster cluster)
        {
            Main.say("TERMINATE count=%d", count);
        }
    }
}
