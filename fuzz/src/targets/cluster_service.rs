// SPDX-License-Identifier: Apache-2.0
//! Messages between a consensus module and containers, taken by the state of the module.

use taran_cluster::protocol::{ServiceCommand, ServiceRequest, split};
use taran_cluster::state::{AckRound, PendingMessages, ServiceAcks, Timers};

use crate::script::Script;

/// Containers of the member.
const SERVICES: usize = 2;

/// Runs a script: messages of containers, the progress of the log, and rounds of acknowledgements.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut pending: Vec<PendingMessages> =
        (0..).take(SERVICES).map(PendingMessages::new).collect();
    let mut timers = Timers::new();
    let mut acks = ServiceAcks::new(SERVICES);
    acks.expect(AckRound::Start, 0);
    let (mut position, mut now) = (0, 0);
    while !script.is_over() {
        match script.u8() % 8 {
            0 => {
                now += 1_000;
                let mut fired = 0;
                while let Some(id) = timers.due(now) {
                    position += 96;
                    timers.fired(id, position);
                    fired += 1;
                    assert!(fired <= bytes.len(), "a timer fires again");
                }
            }
            1 => {
                for service in &mut pending {
                    while service.next().is_some() {
                        position += 96;
                        service.appended(position);
                    }
                }
            }
            2 => {
                timers.on_committed(position);
                for service in &mut pending {
                    service.on_committed(position);
                }
            }
            3 => pending.iter_mut().for_each(PendingMessages::roll_back),
            4 => acks.expect(AckRound::Snapshot, position),
            _ => receive(script.chunk(), &mut pending, &mut timers, &mut acks),
        }
        while let Some(round) = acks.next_complete() {
            assert!(!acks.is_expecting(AckRound::Start) || round.position >= 0);
        }
        assert!(acks.missing().len() <= SERVICES);
    }
}

fn receive(
    bytes: &[u8],
    pending: &mut [PendingMessages],
    timers: &mut Timers,
    acks: &mut ServiceAcks,
) {
    let mut buffer = vec![0; bytes.len() + 512];
    if let Ok(command) = ServiceCommand::decode(bytes) {
        let length = command.encode(&mut buffer).expect("there is room");
        assert_eq!(ServiceCommand::decode(&buffer[..length]), Ok(command));
    }
    let Ok(request) = ServiceRequest::decode(bytes) else {
        return;
    };
    let length = request.encode(&mut buffer).expect("there is room");
    assert_eq!(ServiceRequest::decode(&buffer[..length]), Ok(request));
    match request {
        ServiceRequest::SessionMessageHeader(header) => {
            let service = usize::try_from(header.cluster_session_id).ok();
            let service = service.and_then(|index| pending.get_mut(index));
            if let (Ok((_, payload)), Some(service)) = (split(bytes), service) {
                let before = service.messages().count();
                let queued = service.enqueue(payload).is_ok();
                assert_eq!(service.messages().count(), before + usize::from(queued));
            }
        }
        ServiceRequest::ScheduleTimer(it) => timers.schedule(it.correlation_id, it.deadline),
        ServiceRequest::CancelTimer(it) => drop(timers.cancel(it.correlation_id)),
        // An acknowledgement that is not expected is an error, which ends the member.
        ServiceRequest::ServiceAck(ack) => drop(acks.on_ack(ack)),
        _ => {}
    }
}
