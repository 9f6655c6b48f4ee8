// SPDX-License-Identifier: Apache-2.0
//! Clients on an archive that does what a test says, over a real driver.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use taran::{Client, ExclusivePublication, FragmentAssembler, Subscription};
use taran_archive_client::protocol::{
    ArchiveIdRequest, AuthConnectRequest, ControlResponse, ControlResponseCode, ErrorCode, Event,
    ListRecordingsRequest, Message, NULL_VALUE, ProtocolVersion, RecordingDescriptor,
    RecordingSignal, RecordingSignalEvent, Request,
};
use taran_archive_client::{
    ArchiveClient, ArchiveConnection, ArchiveContext, ArchiveEvent, AsyncArchive,
    ReconnectingArchive, RequestError,
};
use taran_driver::{DriverContext, MediaDriver};

/// Time limit of each wait, for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);
/// Message timeout of the clients, of a clock that the tests advance.
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_NS: i64 = 10_000_000_000;
const SESSION: i64 = 42;
const ARCHIVE_ID: i64 = 7;

/// Response to a request.
fn response(correlation_id: i64, relevant_id: i64, code: ControlResponseCode) -> Event<'static> {
    Event::ControlResponse(ControlResponse {
        control_session_id: SESSION,
        correlation_id,
        relevant_id,
        code,
        version: ProtocolVersion::CURRENT,
        error_message: "text",
    })
}

fn ok(correlation_id: i64, relevant_id: i64) -> Event<'static> {
    response(correlation_id, relevant_id, ControlResponseCode::OK)
}

/// The archive's end of control and response streams.
struct Archive {
    client: Client,
    control: Subscription,
    assembler: FragmentAssembler,
    responses: Option<ExclusivePublication>,
    /// Correlation ids of the requests that were not answered by [`Archive::poll`], in order.
    requests: Vec<i64>,
}

impl Archive {
    fn start(client: &Client) -> Self {
        Self {
            client: client.clone(),
            control: client.add_subscription("aeron:ipc", 10).unwrap(),
            assembler: FragmentAssembler::new(),
            responses: None,
            requests: Vec::new(),
        }
    }

    /// Accepts connections, and keeps the ids of all other requests.
    fn poll(&mut self) {
        let mut answers = Vec::new();
        let mut connect = None;
        let requests = &mut self.requests;
        let on_request =
            |message: &[u8], _: &taran::Header<'_>| match Request::decode(message).unwrap() {
                Request::AuthConnectRequest(AuthConnectRequest {
                    correlation_id,
                    response_channel,
                    response_stream_id,
                    ..
                }) => {
                    connect = Some((response_channel.to_owned(), response_stream_id));
                    answers.push(ok(correlation_id, SESSION));
                }
                Request::ArchiveIdRequest(ArchiveIdRequest { correlation_id, .. }) => {
                    answers.push(ok(correlation_id, ARCHIVE_ID));
                }
                Request::MaxRecordedPositionRequest(request) => {
                    requests.push(request.correlation_id);
                }
                Request::ListRecordingsRequest(ListRecordingsRequest {
                    correlation_id, ..
                }) => requests.push(correlation_id),
                _ => {}
            };
        self.control
            .poll(self.assembler.wrap(on_request), 100)
            .unwrap();
        if let Some((channel, stream_id)) = connect {
            let publication = self.client.add_exclusive_publication(channel, stream_id);
            self.responses = Some(publication.unwrap());
        }
        for answer in answers {
            self.send(&answer);
        }
    }

    fn send(&mut self, event: &Event<'_>) {
        let mut buffer = vec![0; 8_000];
        let length = event.encode(&mut buffer).unwrap();
        self.send_bytes(&buffer[..length]);
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let responses = self.responses.as_mut().unwrap();
        await_true("room for a response", || responses.offer(bytes).is_ok());
    }
}

fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come in time");
        std::thread::yield_now();
    }
}

struct World {
    archive: Archive,
    connection: ArchiveConnection,
    client: Client,
    _driver: MediaDriver,
}

fn context() -> ArchiveContext {
    ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .message_timeout(TIMEOUT)
}

fn launch() -> (MediaDriver, Client) {
    let driver =
        MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
    let client = Client::builder()
        .aeron_dir(driver.aeron_dir())
        .connect()
        .unwrap();
    (driver, client)
}

impl World {
    fn new() -> Self {
        let (driver, client) = launch();
        let mut archive = Archive::start(&client);
        let mut connecting = context().connecting(&client, 0).unwrap();
        let mut connection = None;
        await_true("the connection", || {
            archive.poll();
            connection = connecting.poll(0).unwrap();
            connection.is_some()
        });
        Self {
            archive,
            connection: connection.unwrap(),
            client,
            _driver: driver,
        }
    }

    /// Polls until the archive has this number of requests.
    fn await_requests(&mut self, count: usize) {
        await_true("the requests", || {
            self.connection.poll(0);
            self.archive.poll();
            self.archive.requests.len() == count
        });
    }
}

#[test]
fn connection_has_the_ids_of_the_archive() {
    let world = World::new();
    assert_eq!(world.connection.control_session_id(), SESSION);
    assert_eq!(world.connection.connected_archive_id(), Some(ARCHIVE_ID));
    assert!(world.connection.is_connected());
}

#[test]
fn answers_complete_the_calls_with_their_correlation_ids_in_any_order() {
    let mut world = World::new();
    let mut first = world.connection.max_recorded_position(1);
    let mut second = world.connection.max_recorded_position(2);
    world.await_requests(2);
    let ids = std::mem::take(&mut world.archive.requests);
    assert_eq!(ids, [first.correlation_id(), second.correlation_id()]);
    world.archive.send(&ok(ids[1], 64));
    world
        .archive
        .send(&response(ids[0], 5, ControlResponseCode::ERROR));
    let (mut one, mut two) = (None, None);
    await_true("the answers", || {
        world.connection.poll(0);
        one = one.take().or_else(|| first.poll());
        two = two.take().or_else(|| second.poll());
        one.is_some() && two.is_some()
    });
    assert_eq!(
        one.unwrap().unwrap_err().code(),
        Some(ErrorCode::UnknownRecording)
    );
    assert_eq!(two, Some(Ok(64)));
}

#[test]
fn request_without_answer_times_out_and_a_late_answer_is_ignored() {
    let mut world = World::new();
    let mut call = world.connection.max_recorded_position(1);
    world.await_requests(1);
    world.connection.poll(TIMEOUT_NS - 1);
    assert_eq!(call.poll(), None);
    world.connection.poll(TIMEOUT_NS);
    assert!(matches!(
        call.poll(),
        Some(Err(RequestError::Timeout { after: TIMEOUT, .. }))
    ));
    let late = world.archive.requests[0];
    world.archive.send(&ok(late, 64));
    let signal = signal();
    world.archive.send(&Event::RecordingSignalEvent(signal));
    await_true("the signal behind it", || {
        world.connection.poll(TIMEOUT_NS);
        world.connection.next_event() == Some(ArchiveEvent::Signal(signal))
    });
    assert_eq!(world.connection.pending_calls(), 0);
}

fn signal() -> RecordingSignalEvent {
    RecordingSignalEvent {
        control_session_id: SESSION,
        correlation_id: 1,
        recording_id: 2,
        subscription_id: 3,
        position: 4,
        signal: RecordingSignal::START,
    }
}

#[test]
fn garbage_on_the_response_stream_is_reported_and_skipped() {
    let mut world = World::new();
    let mut call = world.connection.max_recorded_position(1);
    world.await_requests(1);
    let id = world.archive.requests[0];
    world.archive.send_bytes(&[]);
    world.archive.send_bytes(&[0xFF; 100]);
    // Another session's answer, and a request in place of an event.
    let mut foreign = [0; 128];
    let length = ControlResponse {
        control_session_id: SESSION + 1,
        correlation_id: id,
        relevant_id: 1,
        code: ControlResponseCode::OK,
        version: ProtocolVersion::CURRENT,
        error_message: "",
    }
    .encode(&mut foreign)
    .unwrap();
    world.archive.send_bytes(&foreign[..length]);
    let length = ArchiveIdRequest {
        control_session_id: SESSION,
        correlation_id: id,
    }
    .encode(&mut foreign)
    .unwrap();
    world.archive.send_bytes(&foreign[..length]);
    world.archive.send(&ok(id, 96));
    let mut outcome = None;
    await_true("the answer", || {
        world.connection.poll(0);
        outcome = call.poll();
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Ok(96)));
    let malformed = std::iter::from_fn(|| world.connection.next_event())
        .filter(|event| matches!(event, ArchiveEvent::Malformed(_)));
    assert_eq!(malformed.count(), 2);
}

#[test]
fn descriptor_longer_than_a_frame_is_reassembled() {
    let mut world = World::new();
    let mut call = world.connection.list_recordings(0, 1);
    world.await_requests(1);
    let channel = format!("aeron:ipc?alias={}", "a".repeat(3_000));
    world
        .archive
        .send(&Event::RecordingDescriptor(RecordingDescriptor {
            control_session_id: SESSION,
            correlation_id: call.correlation_id(),
            recording_id: 9,
            start_timestamp: 0,
            stop_timestamp: NULL_VALUE,
            start_position: 0,
            stop_position: NULL_VALUE,
            initial_term_id: 0,
            segment_file_length: 65_536,
            term_buffer_length: 65_536,
            mtu_length: 1_408,
            session_id: 1,
            stream_id: 2,
            stripped_channel: "aeron:ipc",
            original_channel: &channel,
            source_identity: "aeron:ipc",
        }));
    let mut outcome = None;
    await_true("the recording", || {
        world.connection.poll(0);
        outcome = call.poll();
        outcome.is_some()
    });
    let recordings = outcome.unwrap().unwrap();
    assert_eq!(recordings.len(), 1);
    assert_eq!(recordings[0].original_channel, channel);
}

#[test]
fn requests_wait_for_room_in_order_and_are_refused_beyond_a_limit() {
    let mut world = World::new();
    // The archive does not read: the control stream fills, then the queue of the client.
    let mut calls = Vec::new();
    let mut refused = 0;
    while refused < 3 {
        let mut call = world.connection.max_recorded_position(1);
        match call.poll() {
            None => calls.push(call),
            Some(Err(RequestError::Overloaded { waiting, .. })) => {
                assert_eq!(waiting, 256);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    let ids: Vec<_> = calls
        .iter()
        .map(taran_archive_client::Call::correlation_id)
        .collect();
    world.await_requests(ids.len());
    assert_eq!(world.archive.requests, ids);
}

#[test]
fn request_that_has_timed_out_is_not_sent_any_more() {
    let mut world = World::new();
    let mut calls = Vec::new();
    while calls.len() < 2_000 {
        let mut call = world.connection.max_recorded_position(1);
        if call.poll().is_some() {
            break;
        }
        calls.push(call);
    }
    world.connection.poll(0);
    world.connection.poll(TIMEOUT_NS);
    assert!(calls.iter_mut().all(|call| call.poll().is_some()));
    // Those in the stream arrive, those that waited for room do not.
    let mut last = world.connection.max_recorded_position(2);
    let last_id = last.correlation_id();
    await_true("the last request", || {
        world.connection.poll(TIMEOUT_NS);
        world.archive.poll();
        world.archive.requests.last() == Some(&last_id)
    });
    assert_eq!(last.poll(), None);
    assert!(world.archive.requests.len() <= calls.len() + 1 - 256);
}

#[test]
fn archive_that_leaves_fails_all_calls() {
    let mut world = World::new();
    let mut call = world.connection.max_recorded_position(1);
    world.await_requests(1);
    world.archive.responses = None;
    await_true("the loss", || {
        world.connection.poll(0);
        !world.connection.is_connected()
    });
    assert_eq!(call.poll(), Some(Err(RequestError::Disconnected)));
    let mut call = world.connection.max_recorded_position(1);
    assert_eq!(call.poll(), Some(Err(RequestError::Disconnected)));
}

#[test]
fn closed_connection_fails_its_calls() {
    let mut world = World::new();
    let mut call = world.connection.max_recorded_position(1);
    world.await_requests(1);
    drop(world.connection);
    assert_eq!(call.poll(), Some(Err(RequestError::Closed)));
}

#[test]
fn request_longer_than_a_message_is_refused() {
    let mut world = World::new();
    let channel = format!("aeron:ipc?alias={}", "a".repeat(9_000));
    let mut call = world.connection.update_channel(1, &channel);
    assert!(matches!(
        call.poll(),
        Some(Err(RequestError::TooLong { max: 8_192, .. }))
    ));
}

#[test]
fn connecting_to_nothing_fails_at_the_deadline() {
    let (_driver, client) = launch();
    let mut connecting = context().connecting(&client, 0).unwrap();
    await_true("a publication without a subscriber", || {
        assert!(connecting.poll(TIMEOUT_NS - 1).unwrap().is_none());
        format!("{connecting:?}").contains("a connection to the archive's control channel")
    });
    let error = connecting.poll(TIMEOUT_NS).unwrap_err();
    assert!(error.to_string().contains("control channel"), "{error}");
}

#[test]
fn reconnecting_archive_makes_a_new_connection_after_a_loss() {
    let (_driver, client) = launch();
    let mut archive = Archive::start(&client);
    let mut reconnecting = ReconnectingArchive::new(context(), client.clone()).unwrap();
    let mut now_ns = 0;
    for generation in 1..4 {
        await_true("a connection", || {
            archive.poll();
            reconnecting.do_work(now_ns);
            reconnecting.is_connected()
        });
        assert_eq!(reconnecting.generation(), generation);
        archive.responses = None;
        await_true("the loss", || {
            reconnecting.do_work(now_ns);
            !reconnecting.is_connected()
        });
        assert!(reconnecting.connection().is_none());
        now_ns += 1_000_000_000;
    }
}

/// Wakes the thread that runs a future.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

#[test]
fn asynchronous_requests_and_events_wake_their_tasks() {
    let World {
        mut archive,
        connection,
        client: _client,
        _driver,
    } = World::new();
    let asynchronous = AsyncArchive::start(connection).unwrap();
    let answering = std::thread::spawn(move || {
        await_true("a request", || {
            archive.poll();
            !archive.requests.is_empty()
        });
        let id = archive.requests[0];
        archive.send(&Event::RecordingSignalEvent(signal()));
        archive.send(&ok(id, 128));
        archive
    });
    assert_eq!(block_on(asynchronous.max_recorded_position(1)), Ok(128));
    assert_eq!(
        block_on(asynchronous.next_event()),
        Some(ArchiveEvent::Signal(signal()))
    );
    // The archive leaves: the task that waits for events ends.
    drop(answering.join().unwrap());
    assert_eq!(block_on(asynchronous.next_event()), None);
    assert!(!asynchronous.is_connected());
}

#[test]
fn blocking_client_waits_for_the_answer() {
    let World {
        mut archive,
        connection,
        client: _client,
        _driver,
    } = World::new();
    let mut blocking = ArchiveClient::of_connection(connection);
    let answering = std::thread::spawn(move || {
        await_true("a request", || {
            archive.poll();
            !archive.requests.is_empty()
        });
        let id = archive.requests[0];
        archive.send(&ok(id, 256));
        archive
    });
    assert_eq!(blocking.max_recorded_position(1), Ok(256));
    drop(answering.join().unwrap());
}
