// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.ClusterException;
import io.aeron.cluster.client.EgressListener;
import io.aeron.cluster.codecs.AdminRequestType;
import io.aeron.cluster.codecs.AdminResponseCode;
import io.aeron.cluster.codecs.EventCode;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.ArrayList;
import java.util.List;

/** Official clients of a cluster. */
final class Clusters
{
    private Clusters()
    {
    }

    /**
     * Connects to the cluster at {@code endpoints}, sends {@code count} messages of growing length one after the other, each
     * until its echo is back, and closes. A message whose echo does not come within {@code resend} seconds is sent again; the service's
     * answer says how often it was applied. Says CONNECTED, NEWLEADER for each change, and ECHOED with the number.
     */
    static void echo(final Args args) throws Exception
    {
        final int count = (int)args.number("count", 100);
        final Listener listener = new Listener();
        try (AeronCluster cluster = AeronCluster.connect(context(args, listener)))
        {
            Main.say("CONNECTED session=%d leader=%d", cluster.clusterSessionId(), cluster.leaderMemberId());
            final UnsafeBuffer buffer = new UnsafeBuffer(new byte[8 * 1024]);
            final long pauseMs = args.number("pause", 0);
            final long resendNs = args.number("resend", 2) * 1_000_000_000L;
            int resent = 0;
            for (int i = 0; i < count; i++)
            {
                final int length = 8 + (i * 37) % (8 * 1024 - 8);
                buffer.putLong(0, i);
                buffer.setMemory(8, length - 8, (byte)i);
                long deadline = 0;
                listener.expected = i;
                listener.length = length;
                while (listener.expected == i)
                {
                    final long now = System.nanoTime();
                    if (now - deadline >= 0 && cluster.offer(buffer, 0, length) > 0)
                    {
                        resent += deadline == 0 ? 0 : 1;
                        deadline = now + resendNs;
                    }
                    cluster.pollEgress();
                    if (cluster.isClosed())
                    {
                        throw new IllegalStateException("closed after " + i + " echoes");
                    }
                    Thread.onSpinWait();
                }
                if (pauseMs > 0)
                {
                    Thread.sleep(pauseMs);
                    cluster.sendKeepAlive();
                }
                if (args.flag("progress") && i % 10 == 9)
                {
                    Main.say("PROGRESS %d leader=%d", i + 1, cluster.leaderMemberId());
                }
            }
            Main.say("ECHOED %d resent=%d", count, resent);
        }
        Main.say("CLOSED");
    }

    /**
     * Asks the cluster at {@code endpoints} for what it has to refuse or answer, and says what comes: VERSION, LIMIT with
     * {@code limit} sessions, ADMIN, UNKNOWN and TIMEOUT with {@code silence} ms without keep-alives.
     */
    static void requests(final Args args) throws Exception
    {
        final Listener listener = new Listener();
        final List<AeronCluster> open = new ArrayList<>();
        final long limit = args.number("limit", 0);
        try
        {
            for (int i = 0; i <= limit; i++)
            {
                open.add(AeronCluster.connect(context(args, listener)));
            }
            Main.say("LIMIT not reached");
        }
        catch (final ClusterException refused)
        {
            Main.say("LIMIT %d %s", open.size(), refused.getMessage());
        }
        final AeronCluster first = open.get(0);
        Main.say("ADMIN sent=%b", first.sendAdminRequestToTakeASnapshot(77));
        final long deadline = System.nanoTime() + 60_000_000_000L;
        while (!listener.answered && System.nanoTime() < deadline)
        {
            first.pollEgress();
            first.sendKeepAlive();
            Thread.sleep(1);
        }
        for (final AeronCluster cluster : open.subList(1, open.size()))
        {
            cluster.close();
        }
        while (!first.isClosed() && System.nanoTime() < deadline)
        {
            first.pollEgress();
            Thread.sleep(1);
        }
        Main.say("CLOSED %b", first.isClosed());
    }

    private static AeronCluster.Context context(final Args args, final Listener listener)
    {
        return new AeronCluster.Context()
            .aeronDirectoryName(args.text("dir"))
            .ingressChannel("aeron:udp")
            .ingressEndpoints(args.text("endpoints"))
            .egressChannel("aeron:udp?endpoint=localhost:0")
            .messageTimeoutNs(args.number("timeout", 60) * 1_000_000_000L)
            // By default two heartbeat timeouts, which an election on a busy machine may exceed.
            .newLeaderTimeoutNs(args.number("timeout", 60) * 1_000_000_000L)
            .egressListener(listener);
    }

    private static final class Listener implements EgressListener
    {
        public void onMessage(
            final long sessionId, final long timestamp, final DirectBuffer buffer, final int offset, final int length,
            final Header header)
        {
            if (buffer.getLong(offset) != expected)
            {
                return;
            }
            if (this.length != length)
            {
                throw new IllegalStateException("echo of " + length + " bytes, sent " + this.length);
            }
            for (int i = 8; i < length; i++)
            {
                if (buffer.getByte(offset + i) != (byte)expected)
                {
                    throw new IllegalStateException("echo " + expected + " differs at " + i);
                }
            }
            expected = -1;
        }

        public void onNewLeader(
            final long sessionId, final long term, final int leader, final String endpoints)
        {
            Main.say("NEWLEADER term=%d leader=%d", term, leader);
        }

        public void onSessionEvent(
            final long correlationId, final long sessionId, final long term, final int leader, final EventCode code,
            final String detail)
        {
            if (code != EventCode.OK)
            {
                Main.say("EVENT %s %s", code, detail);
            }
        }

        public void onAdminResponse(
            final long sessionId, final long correlationId, final AdminRequestType type, final AdminResponseCode code,
            final String message, final DirectBuffer payload, final int offset, final int length)
        {
            Main.say("ADMIN %d %s %s %s", correlationId, type, code, message);
            answered = true;
        }

        private long expected = -1;
        private int length;
        private boolean answered;
    }
}
