// SPDX-License-Identifier: Apache-2.0
//! Clusters: messages, files, and snapshots.

use taran_cluster::consensus::{
    AppendFlags, Message, NewLeadershipTerm, ORIGINAL, ProtocolVersion as MemberVersion,
};
use taran_cluster::files::{EntryKind, NodeState, RecordingLog, RecordingLogEntry};
use taran_cluster::protocol::{
    CancelTimer, ClusterTimeUnit, ConsensusMessage, Context, IngressMessage, ScheduleTimer,
    ServiceAck, ServiceRequest, SessionCloseRequest, SessionConnectRequest, SessionKeepAlive,
};
use taran_cluster::state::{ModuleSnapshot, PendingMessages, SessionLimits, Sessions, Timers};
use taran_fuzz::script::Composer;

use crate::Seed;

const ME: i32 = 1;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = consensus();
    seeds.extend(clients());
    seeds.extend(services());
    seeds.extend(files());
    seeds
}

fn bytes(encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buffer = vec![0; 1024];
    let length = encode(&mut buffer);
    buffer.truncate(length);
    buffer
}

fn member_message(from: i32, message: &Message) -> Vec<u8> {
    let context = Context {
        catchup_endpoint: "localhost:5",
        ..Context::default()
    };
    let message = ConsensusMessage::new(message, from, ME, &context);
    bytes(|buffer| message.encode(buffer).expect("it is short"))
}

/// Time that passes, and messages: the choices of the target for them are 1 and 7.
fn consensus() -> Vec<Seed> {
    let receive =
        |script: Composer, message: &Message| script.u8(7).chunk(&member_message(0, message));
    let canvass = Message::CanvassPosition {
        log_term: -1,
        position: 0,
        term: -1,
        version: MemberVersion::OWN,
        incarnation: ORIGINAL,
    };
    let request = Message::RequestVote {
        log_term: -1,
        position: 0,
        candidate_term: 0,
        version: MemberVersion::OWN,
        voter: ORIGINAL,
    };
    let vote = Message::Vote {
        candidate_term: 0,
        log_term: -1,
        position: 0,
        is_granted: true,
    };
    let announced = Message::NewLeadershipTerm(NewLeadershipTerm {
        log_term: -1,
        next_term: 0,
        next_base: 0,
        next_end: -1,
        term: 0,
        base: 0,
        position: 960,
        commit: 0,
    });
    let appended = Message::AppendPosition {
        term: 0,
        position: 96,
        flags: AppendFlags::new(false, true, true),
    };
    let committed = Message::CommitPosition {
        term: 0,
        position: 96,
    };
    let follower = [&canvass, &request, &announced, &committed]
        .into_iter()
        .fold(Composer::new(), receive);
    let leader = receive(Composer::new(), &canvass).u8(1).u8(1);
    let leader = receive(receive(leader, &vote), &appended).u8(2);
    let mut seeds = vec![
        Seed::new("cluster_consensus", "follower", follower.u8(0).u8(0).done()),
        Seed::new("cluster_consensus", "leader", leader.u8(0).u8(2).done()),
    ];
    for (index, message) in [canvass, request, vote, announced, appended, committed]
        .iter()
        .enumerate()
    {
        let script = receive(Composer::new(), message).u8(1).done();
        seeds.push(Seed::new(
            "cluster_consensus",
            format!("message-{index}"),
            script,
        ));
    }
    seeds
}

fn clients() -> Vec<Seed> {
    let send = |script: Composer, message: &IngressMessage<'_>| {
        let message = bytes(|buffer| message.encode(buffer).expect("it is short"));
        // The image, then the message.
        script.u8(11).u8(1).chunk(&message)
    };
    let connect = IngressMessage::SessionConnectRequest(SessionConnectRequest {
        correlation_id: 1,
        response_stream_id: 102,
        version: Some(3 << 8),
        response_channel: "aeron:udp?endpoint=localhost:0",
        encoded_credentials: b"",
        client_info: "name=fuzz",
    });
    let keep_alive = IngressMessage::SessionKeepAlive(SessionKeepAlive {
        leadership_term_id: 0,
        cluster_session_id: 1,
    });
    let close = IngressMessage::SessionCloseRequest(SessionCloseRequest {
        leadership_term_id: 0,
        cluster_session_id: 1,
    });
    let opened = send(Composer::new().u8(3).u8(2), &connect).u8(4);
    let closed = send(send(opened.clone(), &keep_alive), &close).u8(4);
    vec![
        Seed::new("cluster_ingress", "silent", opened.clone().u8(1).done()),
        Seed::new("cluster_ingress", "closed", closed.done()),
        Seed::new("cluster_ingress", "new-leader", opened.u8(5).u8(5).done()),
    ]
}

fn services() -> Vec<Seed> {
    let send = |script: Composer, message: &ServiceRequest| {
        let message = bytes(|buffer| message.encode(buffer).expect("it is short"));
        script.u8(7).chunk(&message)
    };
    let schedule = ServiceRequest::ScheduleTimer(ScheduleTimer {
        correlation_id: 5,
        deadline: 900,
    });
    let cancel = ServiceRequest::CancelTimer(CancelTimer { correlation_id: 5 });
    let ack = |service_id| {
        ServiceRequest::ServiceAck(ServiceAck {
            log_position: 0,
            timestamp: 0,
            ack_id: 0,
            relevant_id: 3,
            service_id,
        })
    };
    let timers = send(Composer::new(), &schedule).u8(0).u8(2);
    let cancelled = send(send(Composer::new(), &schedule), &cancel).u8(0);
    let started = send(send(Composer::new(), &ack(0)), &ack(1)).u8(4);
    vec![
        Seed::new("cluster_service", "timer", timers.done()),
        Seed::new("cluster_service", "cancelled", cancelled.done()),
        Seed::new("cluster_service", "started", started.done()),
    ]
}

fn files() -> Vec<Seed> {
    let mut log = RecordingLog::default();
    log.append_term(1, 0, 0, 5);
    for service_id in [0, -1] {
        log.append_snapshot(RecordingLogEntry {
            recording_id: 3 + i64::from(service_id),
            leadership_term_id: 0,
            term_base_log_position: 0,
            log_position: 960,
            timestamp: 7,
            service_id,
            kind: EntryKind::Snapshot,
            is_valid: true,
            archive_endpoint: String::new(),
        });
    }
    log.append_term(1, 1, 960, 8);
    let state = NodeState {
        candidate_term: 7,
        timestamp: 5,
        log_position: 960,
    };
    let mut timers = Timers::new();
    timers.schedule(1, 500);
    let mut pending = PendingMessages::new(0);
    pending.enqueue(b"text").expect("there is room");
    let limits = SessionLimits {
        max_sessions: 10,
        timeout: 1,
    };
    let snapshot = ModuleSnapshot {
        log_position: 960,
        term: 0,
        time_unit: ClusterTimeUnit::MILLIS,
        app_version: 1,
    };
    let services = [pending, PendingMessages::new(1)];
    let frames = snapshot.module_frames(&Sessions::new(limits), &timers, &services);
    let frames = frames
        .iter()
        .fold(Composer::new(), |script, frame| script.chunk(frame));
    // The body of a mark file: component, version, activity and so on, then texts.
    let mut mark = vec![0; 128];
    mark[0] = 1;
    for text in ["/dev/shm/aeron", "aeron:ipc", "aeron:udp", "", "", ""] {
        mark.extend((text.len() as u32).to_le_bytes());
        mark.extend(text.as_bytes());
    }
    vec![
        Seed::new("cluster_recording_log", "snapshot", log.to_bytes()),
        Seed::new("cluster_node_state", "term", state.encode().to_vec()),
        Seed::new("cluster_snapshot", "whole", frames.done()),
        Seed::new("cluster_mark", "texts", mark),
    ]
}
