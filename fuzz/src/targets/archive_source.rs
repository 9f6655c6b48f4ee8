// SPDX-License-Identifier: Apache-2.0
//! A hostile source archive of a replication, and of the replay that is recorded: false responses, descriptors, signals and
//! data.

use std::cell::RefCell;
use std::time::Duration;

use taran::{ExclusivePublication, Subscription};
use taran_archive_client::ReplicationParams;
use taran_archive_client::protocol::{
    ControlResponse, ControlResponseCode, Event, ProtocolVersion, RecordingDescriptor, Request,
};

use crate::archive::{ArchiveFixture, TERM};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per archive, and the interval of checks that nothing is left.
const INPUTS_PER_ARCHIVE: usize = 64;
const QUIET_EVERY: usize = 16;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 40;
/// Memory limit of archive and driver in bytes.
const HELD_MAX: isize = 128 << 20;
/// Stream of requests to the source.
const SOURCE_STREAM: i32 = 62;
/// Id of the recording, and of the session that the source opens.
const SOURCE_RECORDING: i64 = 9;
const SOURCE_SESSION: i64 = 7;
/// Length of the header of a message in bytes.
const HEADER: usize = 8;

const TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_millis(1_200),
];

struct SourceFuzzer {
    archive: ArchiveFixture,
    inputs: usize,
}

/// A request that the source has received.
struct Received {
    template_id: u16,
    correlation_id: i64,
}

/// The source of one input.
struct Source {
    requests: Subscription,
    responses: Option<ExclusivePublication>,
    /// Requests without an answer.
    open: Vec<Received>,
    /// Channel and stream of the replay that was asked for last.
    replay: Option<(String, i32)>,
    data: Option<ExclusivePublication>,
}

thread_local! {
    static REPLICATING: RefCell<ReusedState<SourceFuzzer>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs a hostile source.
pub fn run(bytes: &[u8]) {
    REPLICATING.with_borrow_mut(|state| {
        state.run(
            bytes,
            INPUTS_PER_ARCHIVE,
            SourceFuzzer::new,
            SourceFuzzer::act,
        )
    });
}

impl SourceFuzzer {
    fn new() -> Self {
        let mut archive = ArchiveFixture::start();
        archive.driver.set_held_baseline();
        Self { archive, inputs: 0 }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        let mut source = Source {
            requests: self.archive.subscribe("aeron:ipc", SOURCE_STREAM),
            responses: None,
            open: Vec::new(),
            replay: None,
            data: None,
        };
        let replication = self.replicate(&mut script);
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            self.archive.step(Duration::from_millis(1));
            self.take_requests(&mut source);
            let what = script.u8();
            match what >> 5 {
                7 => self.archive.step(TIMES[usize::from(what) % TIMES.len()]),
                6 => self.change(what, &mut source),
                5 => self.respond_bytes(&mut script, &mut source),
                3 | 4 => self.publish_data(what, &mut script, &mut source),
                _ => self.respond(what, &mut script, &mut source),
            }
        }
        self.archive.step(Duration::from_millis(5));
        if let Some(replication) = replication {
            let call = self
                .archive
                .request(|archive| archive.try_stop_replication(replication));
            self.archive.call(call).expect("it can be stopped");
        }
        drop(source);
        self.archive.check_served();
        self.archive.driver.check_held(HELD_MAX);
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.archive.check_nothing_left();
        }
        true
    }

    /// Asks the archive for a replication; returns its id unless the archive refuses.
    fn replicate(&mut self, script: &mut Script<'_>) -> Option<i64> {
        let choice = script.u8();
        let mut params =
            ReplicationParams::new().source_response_channel("aeron:ipc?term-length=64k");
        params = match choice & 3 {
            0 => params.replication_channel("aeron:ipc"),
            1 => params.replication_channel("aeron:udp?endpoint=10.0.0.1:24010"),
            _ => params,
        };
        if choice & 4 != 0 {
            params = params.stop_position(script.near(&[0, 64, TERM, 2 * TERM]));
        }
        if choice & 8 != 0 {
            // The stopped one, or the active one, which is refused.
            let own = &self.archive.recordings;
            if let Some(id) = own.get(usize::from(choice >> 4) % own.len().max(1)) {
                params = params.destination(*id);
            }
        }
        if choice & 0x30 == 0x30 {
            params = params.live_destination("aeron:udp?endpoint=10.0.0.1:24011");
        }
        let call = self.archive.request(|archive| {
            archive.replicate(SOURCE_RECORDING, "aeron:ipc", SOURCE_STREAM, &params)
        });
        self.archive.call(call).ok()
    }

    /// Reads the requests of the archive.
    fn take_requests(&mut self, source: &mut Source) {
        let Source {
            requests,
            open,
            replay,
            ..
        } = source;
        let mut response_stream = None;
        let mut handler = |message: &[u8], _: &taran::Header<'_>| {
            let request =
                Request::decode(message).expect("the archive sends requests that can be read");
            let correlation_id = match &request {
                Request::AuthConnectRequest(request) => {
                    response_stream = Some(request.response_stream_id);
                    request.correlation_id
                }
                Request::ReplayRequest(request) => {
                    *replay = Some((request.replay_channel.to_owned(), request.replay_stream_id));
                    request.correlation_id
                }
                Request::ListRecordingRequest(request) => request.correlation_id,
                Request::RecordingPositionRequest(request) => request.correlation_id,
                Request::MaxRecordedPositionRequest(request) => request.correlation_id,
                Request::StopPositionRequest(request) => request.correlation_id,
                Request::StopReplayRequest(request) => request.correlation_id,
                Request::ArchiveIdRequest(request) => request.correlation_id,
                // Nothing is expected in answer.
                _ => return,
            };
            open.push(Received {
                template_id: request.template_id(),
                correlation_id,
            });
        };
        let mut assembler = taran::FragmentAssembler::new();
        let _ = requests.poll(assembler.wrap(&mut handler), 10);
        let excess = open.len().saturating_sub(8);
        open.drain(..excess);
        if let Some(stream_id) = response_stream
            && source.responses.is_none()
        {
            source.responses = Some(self.archive.publish("aeron:ipc?term-length=64k", stream_id));
        }
    }

    /// Answers a request, mostly as an archive does.
    fn respond(&mut self, what: u8, script: &mut Script<'_>, source: &mut Source) {
        let request = source.open.pop();
        let correlation_id = request
            .as_ref()
            .map_or(-1, |request| request.correlation_id);
        let template = request.as_ref().map_or(0, |request| request.template_id);
        let ok = |relevant_id, code| {
            Event::ControlResponse(ControlResponse {
                control_session_id: SOURCE_SESSION,
                correlation_id,
                relevant_id,
                code,
                version: ProtocolVersion::CURRENT,
                error_message: "text",
            })
        };
        let mut buffer = [0; 512];
        let event = match (what & 0x1F, template) {
            (0, _) => ok(script.near(&[5, 9, -1]), ControlResponseCode::ERROR),
            (1, _) => ok(
                script.near(&[SOURCE_RECORDING, 0]),
                ControlResponseCode::RecordingUnknown,
            ),
            // The descriptor.
            (_, 10) => Event::RecordingDescriptor(RecordingDescriptor {
                control_session_id: SOURCE_SESSION,
                correlation_id,
                recording_id: SOURCE_RECORDING,
                start_timestamp: 1,
                stop_timestamp: -1,
                start_position: script.near(&[0, 0, 64, TERM]),
                stop_position: script.near(&[-1, TERM, 64]),
                initial_term_id: script.near(&[0, 5, i64::from(i32::MAX)]) as i32,
                segment_file_length: script.near(&[TERM, 2 * TERM]) as i32,
                term_buffer_length: script.near(&[TERM]) as i32,
                mtu_length: script.near(&[1_408, 1_344]) as i32,
                session_id: 42,
                stream_id: 1_001,
                stripped_channel: "aeron:ipc",
                original_channel: "aeron:ipc",
                source_identity: "aeron:ipc",
            }),
            // Positions, and the session of a replay.
            _ => ok(
                script.near(&[SOURCE_SESSION, -1, TERM, 64]),
                ControlResponseCode::OK,
            ),
        };
        let length = event.encode(&mut buffer).expect("it is short");
        // Some of the integers are changed.
        if what & 0x18 == 0x18 {
            let at = HEADER + script.below(20) * 4;
            let value = script.near(&[0, -1, SOURCE_SESSION]).to_le_bytes();
            if let Some(word) = buffer[..length].get_mut(at..at + 8) {
                word.copy_from_slice(&value);
            }
        }
        self.send(&buffer[..length], source);
    }

    /// Sends arbitrary bytes; mostly, their ids are those that the archive waits for.
    fn respond_bytes(&mut self, script: &mut Script<'_>, source: &mut Source) {
        let choice = script.u8();
        let mut bytes = script.chunk().to_vec();
        let open = source.open.last();
        let ids = [
            SOURCE_SESSION,
            open.map_or(-1, |request| request.correlation_id),
        ];
        for (at, id) in ids.into_iter().enumerate() {
            let from = HEADER + at * 8;
            if choice & 1 << at == 0
                && let Some(word) = bytes.get_mut(from..from + 8)
            {
                word.copy_from_slice(&id.to_le_bytes());
            }
        }
        self.send(&bytes, source);
    }

    /// Publishes frames of a replay: with the session that was told, from the start, or otherwise.
    fn publish_data(&mut self, what: u8, script: &mut Script<'_>, source: &mut Source) {
        if source.data.is_none()
            && let Some((channel, stream_id)) = &source.replay
        {
            let separator = if channel.contains('?') { '|' } else { '?' };
            let term_length = [64, 64, 64, 128][usize::from(what) & 3];
            let offset = [0, 0, 64, 1_024][usize::from(what >> 2) & 3];
            let mut channel = format!(
                "{channel}{separator}term-length={term_length}k|init-term-id=0|term-id=0|term-offset={offset}"
            );
            if !channel.contains("mtu=") {
                channel.push_str("|mtu=1408");
            }
            if !channel.contains("session-id") {
                channel.push_str("|session-id=7");
            }
            let pending = self
                .archive
                .driver
                .client
                .async_add_exclusive_publication(&channel, *stream_id);
            // The driver may refuse it, for the archive names the channel.
            let mut pending = pending.expect("the command ring has space");
            for _ in 0..20 {
                if let Some(added) = pending.poll() {
                    source.data = added.ok();
                    break;
                }
                self.archive.step(Duration::from_millis(1));
            }
        }
        let length = usize::from(script.u8()) * 5;
        let count = 1 + script.below(64);
        let payload = vec![0xA5; length];
        for _ in 0..count {
            let Some(data) = &mut source.data else { return };
            if data.offer(&payload).is_err() {
                self.archive.step(Duration::from_millis(1));
            }
        }
    }

    /// The source goes away in part, and comes back with the next step.
    fn change(&mut self, what: u8, source: &mut Source) {
        match what & 3 {
            0 => source.data = None,
            1 => source.responses = None,
            2 => {
                if let Some(data) = source.data.take() {
                    data.revoke();
                }
            }
            _ => source.open.clear(),
        }
    }

    fn send(&mut self, bytes: &[u8], source: &mut Source) {
        for _ in 0..20 {
            let Some(responses) = &mut source.responses else {
                return;
            };
            if responses.offer(bytes).is_ok() {
                return;
            }
            self.archive.run_cycle();
        }
    }
}
