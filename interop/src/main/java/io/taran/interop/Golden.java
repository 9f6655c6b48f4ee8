// SPDX-License-Identifier: Apache-2.0
package io.taran.interop;

import io.aeron.cluster.codecs.*;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;

import java.util.HexFormat;

/** Prints messages of the cluster as the official codecs write them: one line each, name and bytes. */
final class Golden
{
    private static final byte[] BYTES = {1, 2, 3, (byte)0xff};

    private final MutableDirectBuffer buffer = new ExpandableArrayBuffer();
    private final MessageHeaderEncoder header = new MessageHeaderEncoder();

    private Golden()
    {
    }

    static void cluster()
    {
        final Golden golden = new Golden();
        golden.client();
        golden.log();
        golden.services();
        golden.snapshots();
    }

    private void client()
    {
        say("SessionMessageHeader", new SessionMessageHeaderEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).timestamp(1_700_000_000_000L).limit());
        say("SessionEvent", new SessionEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .clusterSessionId(3).correlationId(41).leadershipTermId(7).leaderMemberId(2).code(EventCode.REDIRECT)
            .version(768).leaderHeartbeatTimeoutNs(10_000_000_000L).detail("0=a:1,1=b:2").limit());
        say("SessionConnectRequest", new SessionConnectRequestEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).responseStreamId(102).version(768).responseChannel("aeron:udp?endpoint=localhost:9")
            .putEncodedCredentials(BYTES, 0, 4).clientInfo("name=x version=1.51.0").limit());
        say("SessionCloseRequest", new SessionCloseRequestEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).limit());
        say("SessionKeepAlive", new SessionKeepAliveEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).limit());
        say("NewLeaderEvent", new NewLeaderEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).leaderMemberId(2).ingressEndpoints("0=a:1,1=b:2").limit());
        say("Challenge", new ChallengeEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).clusterSessionId(3).putEncodedChallenge(BYTES, 0, 4).limit());
        say("ChallengeResponse", new ChallengeResponseEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).clusterSessionId(3).putEncodedCredentials(BYTES, 0, 4).limit());
        say("AdminRequest", new AdminRequestEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).correlationId(41).requestType(AdminRequestType.SNAPSHOT)
            .putPayload(BYTES, 0, 4).limit());
        say("AdminResponse", new AdminResponseEncoder().wrapAndApplyHeader(buffer, 0, header)
            .clusterSessionId(3).correlationId(41).requestType(AdminRequestType.SNAPSHOT)
            .responseCode(AdminResponseCode.UNAUTHORISED_ACCESS).message("no").putPayload(BYTES, 0, 4).limit());
    }

    private void log()
    {
        say("TimerEvent", new TimerEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).correlationId(41).timestamp(1_700_000_000_000L).limit());
        say("SessionOpenEvent", new SessionOpenEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).correlationId(41).clusterSessionId(3).timestamp(1_700_000_000_000L)
            .responseStreamId(102).responseChannel("aeron:ipc").putEncodedPrincipal(BYTES, 0, 4).limit());
        say("SessionCloseEvent", new SessionCloseEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).clusterSessionId(3).timestamp(1_700_000_000_000L).closeReason(CloseReason.TIMEOUT).limit());
        say("ClusterActionRequest", new ClusterActionRequestEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).logPosition(960).timestamp(1_700_000_000_000L).action(ClusterAction.SNAPSHOT).flags(1).limit());
        say("NewLeadershipTermEvent", new NewLeadershipTermEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).logPosition(960).timestamp(1_700_000_000_000L).termBaseLogPosition(864)
            .leaderMemberId(2).logSessionId(-77).timeUnit(ClusterTimeUnit.NANOS).appVersion(1).limit());
        say("MembershipChangeEvent", new MembershipChangeEventEncoder().wrapAndApplyHeader(buffer, 0, header)
            .leadershipTermId(7).logPosition(960).timestamp(1_700_000_000_000L).leaderMemberId(2).clusterSize(3)
            .changeType(ChangeType.QUIT).memberId(1).clusterMembers("0,a,b,c,d,e").limit());
    }

    private void services()
    {
        say("CloseSession", new CloseSessionEncoder().wrapAndApplyHeader(buffer, 0, header).clusterSessionId(3).limit());
        say("ScheduleTimer", new ScheduleTimerEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).deadline(1_700_000_000_000L).limit());
        say("CancelTimer", new CancelTimerEncoder().wrapAndApplyHeader(buffer, 0, header).correlationId(41).limit());
        say("ServiceAck", new ServiceAckEncoder().wrapAndApplyHeader(buffer, 0, header)
            .logPosition(960).timestamp(1_700_000_000_000L).ackId(5).relevantId(-1).serviceId(1).limit());
        say("ClusterMembersQuery", new ClusterMembersQueryEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).extended(BooleanType.TRUE).limit());
        say("JoinLog", new JoinLogEncoder().wrapAndApplyHeader(buffer, 0, header)
            .logPosition(960).maxLogPosition(Long.MAX_VALUE).memberId(2).logSessionId(-77).logStreamId(100)
            .isStartup(BooleanType.FALSE).role(2).isStandby(BooleanType.FALSE).logChannel("aeron:ipc").limit());
        say("ClusterMembersResponse", new ClusterMembersResponseEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).leaderMemberId(2).activeMembers("0,a,b,c,d,e").passiveFollowers("").limit());
        say("ServiceTerminationPosition", new ServiceTerminationPositionEncoder().wrapAndApplyHeader(buffer, 0, header)
            .logPosition(960).limit());
        say("RequestServiceAck", new RequestServiceAckEncoder().wrapAndApplyHeader(buffer, 0, header).logPosition(960).limit());
    }

    private void snapshots()
    {
        say("SnapshotMarker", new SnapshotMarkerEncoder().wrapAndApplyHeader(buffer, 0, header)
            .typeId(1).logPosition(960).leadershipTermId(7).index(0).mark(SnapshotMark.END)
            .timeUnit(ClusterTimeUnit.MILLIS).appVersion(1).limit());
        say("ClientSession", new ClientSessionEncoder().wrapAndApplyHeader(buffer, 0, header)
            .clusterSessionId(3).responseStreamId(102).responseChannel("aeron:ipc").putEncodedPrincipal(BYTES, 0, 4).limit());
        say("ClusterSession", new ClusterSessionEncoder().wrapAndApplyHeader(buffer, 0, header)
            .clusterSessionId(3).correlationId(41).openedLogPosition(192).timeOfLastActivity(-1)
            .closeReason(CloseReason.NULL_VAL).responseStreamId(102).responseChannel("aeron:ipc").limit());
        say("Timer", new TimerEncoder().wrapAndApplyHeader(buffer, 0, header)
            .correlationId(41).deadline(1_700_000_000_000L).limit());
        say("ConsensusModule", new ConsensusModuleEncoder().wrapAndApplyHeader(buffer, 0, header)
            .nextSessionId(4).nextServiceSessionId(Long.MIN_VALUE + 3).logServiceSessionId(Long.MIN_VALUE + 2)
            .pendingMessageCapacity(4096).limit());
        say("ClusterMembers", new ClusterMembersEncoder().wrapAndApplyHeader(buffer, 0, header)
            .memberId(2).highMemberId(2).clusterMembers("0,a,b,c,d,e").limit());
        say("PendingMessageTracker", new PendingMessageTrackerEncoder().wrapAndApplyHeader(buffer, 0, header)
            .nextServiceSessionId(Long.MIN_VALUE + 3).logServiceSessionId(Long.MIN_VALUE + 2)
            .pendingMessageCapacity(4096).serviceId(1).limit());
    }

    private void say(final String name, final int limit)
    {
        final byte[] bytes = new byte[limit];
        buffer.getBytes(0, bytes);
        Main.say("%s %s", name, HexFormat.of().formatHex(bytes));
    }
}
