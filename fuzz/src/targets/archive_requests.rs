// SPDX-License-Identifier: Apache-2.0
//! A hostile client of a whole archive: requests with arbitrary fields, and arbitrary bytes, on a control session of its own.

use std::cell::RefCell;
use std::time::Duration;

use taran::{Counter, ExclusivePublication, Subscription};
use taran_archive_client::protocol::{
    AuthConnectRequest, ControlResponseCode, Event, ProtocolVersion, Request,
};

use crate::archive::{ArchiveFixture, STREAM, TERM};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per archive, and the interval of checks that nothing is left.
const INPUTS_PER_ARCHIVE: usize = 64;
const QUIET_EVERY: usize = 16;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 24;
/// Memory limit of archive and driver in bytes.
const HELD_MAX: isize = 128 << 20;
/// Largest number of integers of a request that are changed.
const CHANGES_MAX: usize = 4;
/// Streams of requests and responses.
const REQUEST_STREAM: i32 = 10;
const RESPONSE_STREAM: i32 = 61;
/// Length of the header of a message in bytes, and of the ids that most requests begin with.
const HEADER: usize = 8;
const IDS: usize = 16;
const SCHEMA_ID: u16 = 101;
const SCHEMA_VERSION: u16 = 13;

/// Template id, length of the block in bytes, and number of texts of each request (`docs/spec/archive.md` §2).
pub const REQUESTS: [(u16, u16, usize); 39] = [
    (2, 16, 1),
    (3, 8, 0),
    (4, 24, 1),
    (5, 20, 1),
    (6, 56, 1),
    (7, 24, 0),
    (8, 28, 0),
    (9, 32, 1),
    (10, 24, 0),
    (11, 32, 1),
    (12, 24, 0),
    (13, 32, 0),
    (14, 24, 0),
    (15, 24, 0),
    (16, 32, 1),
    (17, 32, 1),
    (18, 60, 1),
    (19, 24, 0),
    (50, 36, 2),
    (51, 24, 0),
    (52, 24, 0),
    (53, 32, 0),
    (54, 24, 0),
    (55, 32, 0),
    (56, 24, 0),
    (57, 32, 0),
    (58, 16, 3),
    (60, 16, 1),
    (61, 16, 0),
    (62, 52, 2),
    (63, 28, 1),
    (64, 36, 1),
    (65, 24, 0),
    (66, 68, 5),
    (67, 24, 0),
    (68, 16, 0),
    (104, 24, 0),
    (105, 24, 0),
    (107, 24, 1),
];

/// Channels of recordings, replays, responses and source archives.
const CHANNELS: [&str; 14] = [
    "aeron:ipc",
    "aeron:ipc?term-length=64k|mtu=1408|init-term-id=0",
    "aeron:udp?endpoint=10.0.0.1:24001",
    "aeron:udp?endpoint=10.0.0.1:24002|session-id=7",
    "aeron:udp?endpoint=10.0.0.1:0",
    "aeron:udp?endpoint=10.0.0.1:8010",
    "aeron:udp?control=10.0.0.1:24003|control-mode=dynamic",
    "aeron:udp?control-mode=manual",
    "aeron:udp?control-mode=response|control=10.0.0.1:24004",
    "aeron-spy:aeron:udp?endpoint=10.0.0.1:24001",
    "aeron:udp?endpoint=unknown:24005",
    "aeron:ipc?alias=text|tags=5",
    "aeron:udp",
    "",
];

const TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_millis(1_200),
];

/// An archive, and what a hostile client has.
struct RequestFuzzer {
    archive: ArchiveFixture,
    next_id: i64,
    inputs: usize,
}

/// The session of one input.
struct Hostile {
    requests: ExclusivePublication,
    responses: Subscription,
    session_id: i64,
    /// Results of the latest requests: ids and positions.
    results: Vec<i64>,
    replays: Vec<Subscription>,
    limit: Counter,
}

thread_local! {
    static REQUESTING: RefCell<ReusedState<RequestFuzzer>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs a hostile client.
pub fn run(bytes: &[u8]) {
    REQUESTING.with_borrow_mut(|state| {
        state.run(
            bytes,
            INPUTS_PER_ARCHIVE,
            RequestFuzzer::new,
            RequestFuzzer::act,
        )
    });
}

/// Writes a request whose integers are 0 but for the ids.
pub fn request(
    (template, block, texts): (u16, u16, usize),
    session_id: i64,
    correlation_id: i64,
    channel: &str,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [block, template, SCHEMA_ID, SCHEMA_VERSION] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(HEADER + usize::from(block), 0);
    set_ids(&mut bytes, template, session_id, correlation_id);
    for _ in 0..texts {
        bytes.extend((channel.len() as u32).to_le_bytes());
        bytes.extend(channel.as_bytes());
    }
    bytes
}

/// Requests to connect begin with the correlation id alone.
fn set_ids(bytes: &mut [u8], template: u16, session_id: i64, correlation_id: i64) {
    let ids = match template {
        2 | 58 => [correlation_id, i64::from(RESPONSE_STREAM)],
        _ => [session_id, correlation_id],
    };
    for (at, id) in ids.into_iter().enumerate() {
        let from = HEADER + at * 8;
        if let Some(word) = bytes.get_mut(from..from + 8) {
            word.copy_from_slice(&id.to_le_bytes());
        }
    }
}

impl RequestFuzzer {
    fn new() -> Self {
        let mut archive = ArchiveFixture::start();
        archive.driver.set_held_baseline();
        Self {
            archive,
            next_id: 1,
            inputs: 0,
        }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        let mut hostile = self.connect();
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            match what >> 5 {
                7 => self.archive.step(TIMES[usize::from(what) % TIMES.len()]),
                6 => self.other(what, &mut script, &mut hostile),
                5 => self.send_bytes(&mut script, &mut hostile),
                _ => self.send_request(&mut script, &mut hostile),
            }
            if what & 1 == 0 {
                self.archive.run_cycle();
            }
            self.take_responses(&mut hostile);
        }
        self.archive.step(Duration::from_millis(2));
        self.take_responses(&mut hostile);
        drop(hostile);
        self.archive.check_served();
        self.archive.driver.check_held(HELD_MAX);
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.archive.check_nothing_left();
        }
        true
    }

    fn correlation_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Opens a session.
    fn connect(&mut self) -> Hostile {
        let responses = self.archive.subscribe("aeron:ipc", RESPONSE_STREAM);
        let requests = self
            .archive
            .publish("aeron:ipc?term-length=64k", REQUEST_STREAM);
        let counter = self
            .archive
            .driver
            .client
            .async_add_counter(1_001, &[], "a limit");
        let limit = self
            .archive
            .answer(counter.expect("the command ring has space"));
        let mut hostile = Hostile {
            requests,
            responses,
            session_id: -1,
            results: vec![0],
            replays: Vec::new(),
            limit,
        };
        let correlation_id = self.correlation_id();
        let connect = Request::AuthConnectRequest(AuthConnectRequest {
            correlation_id,
            response_stream_id: RESPONSE_STREAM,
            version: ProtocolVersion::CURRENT,
            response_channel: "aeron:ipc?term-length=64k",
            encoded_credentials: b"",
            client_info: "name=hostile",
        });
        let mut buffer = [0; 256];
        let length = connect.encode(&mut buffer).expect("it is short");
        let mut is_sent = false;
        for _ in 0..200 {
            is_sent = is_sent || hostile.requests.offer(&buffer[..length]).is_ok();
            self.archive.step(Duration::from_millis(1));
            self.take_responses(&mut hostile);
            if hostile.session_id >= 0 {
                return hostile;
            }
        }
        panic!("the session was not opened");
    }

    /// Reads all responses, which have to be messages that a client understands.
    fn take_responses(&mut self, hostile: &mut Hostile) {
        let (session_id, results) = (&mut hostile.session_id, &mut hostile.results);
        let handler = |message: &[u8], _: &taran::Header<'_>| match Event::decode(message) {
            Ok(Event::ControlResponse(response)) => {
                let is_first = *session_id < 0;
                if is_first && response.code == ControlResponseCode::OK {
                    *session_id = response.control_session_id;
                }
                if response.code == ControlResponseCode::ERROR {
                    assert!(!response.error_message.is_empty(), "{response}");
                }
                results.push(response.relevant_id);
            }
            Ok(_) => {}
            Err(error) => panic!("a response cannot be read: {error}"),
        };
        let mut assembler = taran::FragmentAssembler::new();
        let mut handler = handler;
        let _ = hostile.responses.poll(assembler.wrap(&mut handler), 100);
        let excess = hostile.results.len().saturating_sub(8);
        hostile.results.drain(..excess);
        for replay in &mut hostile.replays {
            let _ = replay.poll(|_, _| (), 10);
        }
    }

    /// Does something that is not a request.
    fn other(&mut self, what: u8, script: &mut Script<'_>, hostile: &mut Hostile) {
        match what & 3 {
            0 => self.archive.offer(1 + usize::from(script.u8()) * 5),
            1 => hostile.limit.set(script.near(&[0, TERM, -1, i64::MAX])),
            2 if hostile.replays.len() < 4 => {
                let channel =
                    ["aeron:ipc", "aeron:udp?endpoint=10.0.0.1:24001"][usize::from(what >> 2 & 1)];
                let subscription = self.archive.subscribe(channel, script.below(4) as i32);
                hostile.replays.push(subscription);
            }
            _ => hostile.replays.clear(),
        }
    }

    /// Sends a request whose fields are near valid ones.
    fn send_request(&mut self, script: &mut Script<'_>, hostile: &mut Hostile) {
        let kind = REQUESTS[script.below(REQUESTS.len())];
        let channel = CHANNELS[script.below(CHANNELS.len())];
        let session_id = hostile.session_id;
        let correlation_id = self.correlation_id();
        let mut bytes = request(kind, session_id, correlation_id, channel);
        let block = usize::from(kind.1);
        let mut known = vec![
            STREAM.into(),
            0,
            TERM,
            2 * TERM,
            -1,
            -2,
            1_344,
            session_id,
            hostile.limit.id().into(),
            i64::MAX,
            i64::MIN,
        ];
        known.extend(&self.archive.recordings);
        known.extend(&hostile.results);
        let mut set = |at: usize, width: usize, value: i64| {
            let field = bytes.get_mut(HEADER + at..HEADER + (at + width).min(block));
            if let Some(field) = field {
                let length = field.len();
                field.copy_from_slice(&value.to_le_bytes()[..length]);
            }
        };
        if block >= IDS + 8 {
            // Mostly the id of a recording, or a stream id.
            let ids = [&self.archive.recordings[..], &[STREAM.into(), 1]].concat();
            set(IDS, 8, script.near(&ids));
        }
        for _ in 0..script.below(CHANGES_MAX + 1) {
            let at = script.u8();
            let width = if at & 0x80 == 0 { 8 } else { 4 };
            // Rarely the ids themselves.
            let from = if at & 0x70 == 0x70 { 0 } else { IDS };
            let words = (block.saturating_sub(from) / 4).max(1);
            set(
                from + usize::from(at) % words * 4,
                width,
                script.near(&known),
            );
        }
        self.send(&bytes, hostile);
    }

    /// Sends arbitrary bytes.
    fn send_bytes(&mut self, script: &mut Script<'_>, hostile: &mut Hostile) {
        let choice = script.u8();
        let mut bytes = script.chunk().to_vec();
        if choice & 1 == 0 && bytes.len() >= HEADER {
            let template = u16::from_le_bytes([bytes[2], bytes[3]]);
            let correlation_id = self.correlation_id();
            set_ids(&mut bytes, template, hostile.session_id, correlation_id);
        }
        self.send(&bytes, hostile);
    }

    fn send(&mut self, bytes: &[u8], hostile: &mut Hostile) {
        for _ in 0..20 {
            if hostile.requests.offer(bytes).is_ok() {
                return;
            }
            self.archive.run_cycle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_the_table_is_one_that_archives_read() {
        for kind in REQUESTS {
            let bytes = request(kind, 1, 2, "aeron:ipc");
            let read = Request::decode(&bytes);
            assert_eq!(read.map(|read| read.template_id()), Ok(kind.0));
        }
    }
}
