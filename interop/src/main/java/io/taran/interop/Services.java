// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.ShutdownSignalBarrier;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;

/** Official containers of services. */
final class Services
{
    private Services()
    {
    }

    /**
     * An official container with the driver in {@code dir}, the directory {@code cluster-dir} and the service
     * {@code service-id} of a cluster. Says READY, what {@link Relay} says, and CLOSED; ends when standard input is closed,
     * or the cluster ends it.
     */
    static void run(final Args args) throws Exception
    {
        final ShutdownSignalBarrier ended = new ShutdownSignalBarrier();
        final int serviceId = (int)args.number("service-id", 0);
        final ClusteredServiceContainer.Context context = new ClusteredServiceContainer.Context()
            .aeronDirectoryName(args.text("dir"))
            .clusterDir(new File(args.text("cluster-dir")))
            .serviceId(serviceId)
            .archiveContext(new AeronArchive.Context()
                .aeronDirectoryName(args.text("dir"))
                .controlRequestChannel("aeron:ipc?term-length=64k")
                .controlResponseChannel("aeron:ipc?term-length=64k"))
            .clusteredService(new Relay(serviceId))
            .errorHandler(error -> Main.say("ERROR service %s", error.toString().lines().findFirst().orElse("")))
            .terminationHook(ended::signalAll);
        try (ClusteredServiceContainer ignored = ClusteredServiceContainer.launch(context))
        {
            Main.say("READY service=%d", serviceId);
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

    /**
     * Counts messages of clients, timers, and messages of services. Service 0 answers clients; each 10th message makes all
     * services schedule a timer, and makes each of them send its number to all. The snapshot has the three counts. Says COUNTS
     * at each change of a count.
     */
    static final class Relay implements ClusteredService
    {
        private final int serviceId;
        private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[24]);
        private Cluster cluster;
        private long messages;
        private long timers;
        private long relayed;

        Relay(final int serviceId)
        {
            this.serviceId = serviceId;
        }

        public void onStart(final Cluster cluster, final Image snapshot)
        {
            this.cluster = cluster;
            while (snapshot != null && !snapshot.isEndOfStream())
            {
                snapshot.poll((bytes, offset, length, header) ->
                {
                    messages = bytes.getLong(offset);
                    timers = bytes.getLong(offset + 8);
                    relayed = bytes.getLong(offset + 16);
                }, 1);
            }
            say("STARTED");
        }

        public void onSessionOpen(final ClientSession session, final long timestamp)
        {
        }

        public void onSessionClose(final ClientSession session, final long timestamp, final CloseReason reason)
        {
        }

        public void onSessionMessage(
            final ClientSession session,
            final long timestamp,
            final DirectBuffer bytes,
            final int offset,
            final int length,
            final Header header)
        {
            if (session == null)
            {
                relayed++;
                say("COUNTS");
                return;
            }
            messages++;
            say("COUNTS");
            if (messages % 10 == 0)
            {
                while (!cluster.scheduleTimer(1000 * serviceId + messages, timestamp + 1))
                {
                    cluster.idleStrategy().idle();
                }
                buffer.putLong(0, messages);
                while (cluster.offer(buffer, 0, 8) < 0)
                {
                    cluster.idleStrategy().idle();
                }
            }
            if (serviceId == 0)
            {
                while (session.offer(bytes, offset, length) < 0 && !session.isClosing() &&
                    cluster.role() == Cluster.Role.LEADER)
                {
                    cluster.idleStrategy().idle();
                }
            }
        }

        public void onTimerEvent(final long correlationId, final long timestamp)
        {
            if (correlationId / 1000 == serviceId)
            {
                timers++;
                say("COUNTS");
            }
        }

        public void onTakeSnapshot(final ExclusivePublication snapshot)
        {
            buffer.putLong(0, messages);
            buffer.putLong(8, timers);
            buffer.putLong(16, relayed);
            while (snapshot.offer(buffer) < 0)
            {
                cluster.idleStrategy().idle();
            }
            say("SNAPSHOT");
        }

        public void onRoleChange(final Cluster.Role role)
        {
            Main.say("ROLE %s", role);
        }

        public void onTerminate(final Cluster cluster)
        {
            say("TERMINATE");
        }

        private void say(final String what)
        {
            Main.say("%s messages=%d timers=%d relayed=%d", what, messages, timers, relayed);
        }
    }
}
