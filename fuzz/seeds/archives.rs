// SPDX-License-Identifier: Apache-2.0
//! Archives: files, messages, and scripts of a hostile archive.

use std::path::Path;
use std::sync::Arc;

use taran_archive::files::tools::export;
use taran_archive::files::{
    CATALOG_FILE, CatalogFile, CatalogOptions, Checksum, EntryState, NewRecording, SegmentCreator,
    SegmentName, SyncLevel,
};
use taran_archive_client::protocol::{
    AuthConnectRequest, BoundedReplayRequest, Challenge, ControlResponse, ControlResponseCode,
    Event, ListRecordingsForUriRequest, MaxRecordedPositionRequest, ProtocolVersion,
    RecordingDescriptor, RecordingEvent, RecordingSignal, RecordingSignalEvent, RecordingStarted,
    ReplicateRequest2, Request, SourceLocation, StartRecordingRequest2,
};
use taran_fuzz::script::Composer;
use taran_fuzz::targets;
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType};
use taran_sim::disk::{SimDisk, SimDiskOptions};
use taran_storage::{Disk, OpenOptions};

use crate::Seed;

const DIRECTORY: &str = "/archive";
const TERM: i32 = 64 * 1024;
const STREAM: i32 = 1001;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = files();
    seeds.extend(messages());
    seeds.extend(hostile());
    seeds.extend(hostile_clients());
    seeds.extend(hostile_sources());
    seeds
}

/// A frame of 64 bytes.
fn frame(offset: i32, frame_type: FrameType, length: i32) -> Vec<u8> {
    let header = DataHeader {
        header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, frame_type),
        term_offset: offset.into(),
        session_id: 42.into(),
        stream_id: STREAM.into(),
        term_id: 0.into(),
        reserved_value: 0.into(),
    };
    let mut bytes = zerocopy::IntoBytes::as_bytes(&header).to_vec();
    if frame_type == FrameType::DATA {
        bytes.resize(64, 0x5A);
    }
    bytes
}

fn files() -> Vec<Seed> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1, SimDiskOptions::default()).process());
    let directory = Path::new(DIRECTORY);
    disk.create_directory(directory).expect("the disk is empty");
    let options = CatalogOptions {
        capacity: 1024,
        checksum: Some(Checksum::Crc32c),
        ..CatalogOptions::default()
    };
    let (mut file, mut catalog, _) =
        CatalogFile::open(&disk, directory, options).expect("the disk works");
    let new = NewRecording {
        start_timestamp: 1,
        start_position: 0,
        initial_term_id: 0,
        segment_file_length: TERM,
        term_buffer_length: TERM,
        mtu_length: 1408,
        session_id: 42,
        stream_id: STREAM,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc?alias=a",
        source_identity: "aeron:ipc",
    };
    for _ in 0..3 {
        let (_, change) = catalog.add(&new).expect("there is room");
        file.apply(&change).expect("the disk works");
    }
    for change in [
        catalog.stop(0, 128, 2),
        catalog.set_state(1, EntryState::Deleted),
    ] {
        let change = change.expect("it is listed");
        file.apply(&change).expect("the disk works");
    }
    file.close().expect("the disk works");
    let catalog_file = disk
        .open(&directory.join(CATALOG_FILE), OpenOptions::read())
        .expect("it was created");
    let mut bytes = vec![0; catalog.used() as usize];
    catalog_file
        .read_exact_at(&mut bytes, 0)
        .expect("it has entries");
    let mut cut = bytes.clone();
    cut.truncate(bytes.len() - 20);
    let mut damaged = bytes.clone();
    damaged[32..36].copy_from_slice(&[0xFF; 4]);

    let frames = [
        frame(0, FrameType::DATA, 64),
        frame(64, FrameType::DATA, 60),
        frame(128, FrameType::PAD, 1024),
    ]
    .concat();
    let creator = SegmentCreator {
        disk: &*disk,
        directory,
        sync: SyncLevel::None,
    };
    let name = SegmentName::new(0, 0).expect("it is not negative");
    let segment = creator.create(name, TERM).expect("the disk has room");
    segment.write_at(&frames, 0).expect("the disk has room");
    let mut exported = vec![1];
    let descriptor = catalog.get(0).expect("it is listed");
    export(
        &*disk,
        directory,
        descriptor,
        0..i64::MAX,
        &mut exported,
        |_| (),
    )
    .expect("it has its frames");

    let whole = |split: u8| Composer::new().u8(split).u8(0).raw(&frames).done();
    let mut torn = whole(255);
    let end = torn.len();
    torn[end - 20..].fill(0);
    // The body of a mark file: version, activity, start, process id and so on, then four texts.
    let mut mark = vec![0; 128];
    mark[..4].copy_from_slice(&(3_i32 << 16 | 1 << 8).to_le_bytes());
    for text in ["aeron:ipc", "aeron:ipc", "", "/dev/shm/aeron"] {
        mark.extend((text.len() as u32).to_le_bytes());
        mark.extend(text.as_bytes());
    }
    vec![
        Seed::new("archive_catalog", "three", bytes),
        Seed::new("archive_catalog", "cut", cut),
        Seed::new("archive_catalog", "damaged", damaged),
        Seed::new("archive_import", "two", exported),
        Seed::new("archive_mark", "texts", mark),
        Seed::new("archive_segments", "one", whole(255)),
        Seed::new("archive_segments", "split", whole(128)),
        Seed::new("archive_segments", "torn", torn),
    ]
}

fn requests() -> Vec<Request<'static>> {
    let control_session_id = 7;
    let correlation_id = 1;
    vec![
        Request::AuthConnectRequest(AuthConnectRequest {
            correlation_id,
            response_stream_id: 20,
            version: ProtocolVersion::CURRENT,
            response_channel: "aeron:ipc",
            encoded_credentials: b"me",
            client_info: "name=fuzz",
        }),
        Request::StartRecordingRequest2(StartRecordingRequest2 {
            control_session_id,
            correlation_id,
            stream_id: STREAM,
            source_location: SourceLocation::LOCAL,
            auto_stop: true,
            channel: "aeron:ipc",
        }),
        Request::BoundedReplayRequest(BoundedReplayRequest {
            control_session_id,
            correlation_id,
            recording_id: 0,
            position: 0,
            length: -2,
            limit_counter_id: 3,
            replay_stream_id: 5,
            file_io_max_length: -1,
            replay_token: -1,
            replay_channel: "aeron:udp?endpoint=10.0.0.1:0",
        }),
        Request::ListRecordingsForUriRequest(ListRecordingsForUriRequest {
            control_session_id,
            correlation_id,
            from_recording_id: 0,
            record_count: 10,
            stream_id: STREAM,
            channel: "ipc",
        }),
        Request::MaxRecordedPositionRequest(MaxRecordedPositionRequest {
            control_session_id,
            correlation_id,
            recording_id: 0,
        }),
        Request::ReplicateRequest2(ReplicateRequest2 {
            control_session_id,
            correlation_id,
            src_recording_id: 0,
            dst_recording_id: -1,
            stop_position: -1,
            channel_tag_id: -1,
            subscription_tag_id: -1,
            src_control_stream_id: 10,
            file_io_max_length: -1,
            replication_session_id: -1,
            src_control_channel: "aeron:udp?endpoint=10.0.0.2:8010",
            live_destination: "",
            replication_channel: "",
            encoded_credentials: b"",
            src_response_channel: "",
        }),
    ]
}

fn ok(relevant_id: i64, code: ControlResponseCode) -> Event<'static> {
    Event::ControlResponse(ControlResponse {
        control_session_id: 7,
        correlation_id: 1,
        relevant_id,
        code,
        version: ProtocolVersion::CURRENT,
        error_message: "text",
    })
}

fn descriptor() -> Event<'static> {
    Event::RecordingDescriptor(RecordingDescriptor {
        control_session_id: 7,
        correlation_id: 1,
        recording_id: 9,
        start_timestamp: 0,
        stop_timestamp: -1,
        start_position: 0,
        stop_position: -1,
        initial_term_id: 0,
        segment_file_length: TERM,
        term_buffer_length: TERM,
        mtu_length: 1408,
        session_id: 42,
        stream_id: STREAM,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc",
        source_identity: "aeron:ipc",
    })
}

fn events() -> Vec<Event<'static>> {
    vec![
        ok(7, ControlResponseCode::OK),
        ok(5, ControlResponseCode::ERROR),
        ok(5, ControlResponseCode::RecordingUnknown),
        descriptor(),
        Event::Challenge(Challenge {
            control_session_id: 7,
            correlation_id: 1,
            version: ProtocolVersion::CURRENT,
            encoded_challenge: b"abc",
        }),
        Event::RecordingSignalEvent(RecordingSignalEvent {
            control_session_id: 7,
            correlation_id: 1,
            recording_id: 9,
            subscription_id: 2,
            position: 64,
            signal: RecordingSignal::SYNC,
        }),
    ]
}

fn bytes(encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buffer = vec![0; 1024];
    let length = encode(&mut buffer);
    buffer.truncate(length);
    buffer
}

fn event(event: &Event<'_>) -> Vec<u8> {
    bytes(|buffer| event.encode(buffer).expect("it is short"))
}

fn messages() -> Vec<Seed> {
    let requests = requests();
    let requests = requests
        .iter()
        .map(|request| bytes(|buffer| request.encode(buffer).expect("it is short")));
    let events = events();
    let events = events.iter().map(event);
    let started = RecordingEvent::RecordingStarted(RecordingStarted {
        recording_id: 9,
        start_position: 0,
        session_id: 42,
        stream_id: STREAM,
        channel: "aeron:ipc",
        source_identity: "aeron:ipc",
    });
    let started = bytes(|buffer| started.encode(buffer).expect("it is short"));
    requests
        .chain(events)
        .chain([started])
        .enumerate()
        .map(|(index, bytes)| Seed::new("archive_messages", format!("message-{index}"), bytes))
        .collect()
}

fn hostile() -> Vec<Seed> {
    let answer = event(&ok(7, ControlResponseCode::OK));
    let [_, error, unknown, descriptor, challenge, signal] = events()
        .iter()
        .map(event)
        .collect::<Vec<_>>()
        .try_into()
        .expect("there are six");
    // A request is sent, then a message comes with the ids that the client waits for.
    let step = |script: Composer, message: &[u8]| script.u8(0).u8(0).chunk(message);
    let connected = step(step(Composer::new(), &answer), &answer).u8(0);
    let challenged = step(Composer::new(), &challenge);
    let refused = step(Composer::new(), &error).u8(0);
    // A message for the call with an index, then time passes.
    let call =
        |script: Composer, index: u8, message: &[u8]| script.u8(index).u8(0).chunk(message).u8(1);
    let mut calls = connected.clone().u8(0).chunk(&[]);
    for (index, message) in [
        (0, &answer),
        (1, &descriptor),
        (2, &descriptor),
        (2, &unknown),
        (4, &error),
        (5, &signal),
    ] {
        calls = call(calls, index, message);
    }
    vec![
        Seed::new("archive_client", "connected", connected.done()),
        Seed::new("archive_client", "challenged", challenged.done()),
        Seed::new("archive_client", "refused", refused.done()),
        Seed::new("archive_client", "calls", calls.done()),
    ]
}

/// Scripts with each request, with the fields of valid ones.
fn hostile_clients() -> Vec<Seed> {
    // Structured: the kind, the channel, the recording, no changes.
    let structured = |kind: usize, channel: u8, recording: u8| {
        Composer::new()
            .u8(1)
            .u8(kind as u8)
            .u8(channel)
            .known(recording)
            .u8(0)
    };
    let kinds = &targets::archive_requests::REQUESTS;
    let each = kinds.iter().enumerate().map(|(index, (template, ..))| {
        let script = structured(index, (index % 12) as u8, 0).u8(0xE1).done();
        Seed::new("archive_requests", format!("request-{template}"), script)
    });
    let all = (0..kinds.len())
        .step_by(2)
        .fold(Composer::new(), |script, index| {
            script.raw(&structured(index, 0, (index % 2) as u8).done())
        });
    let raw = requests()
        .into_iter()
        .fold(Composer::new(), |script, request| {
            let request = bytes(|buffer| request.encode(buffer).expect("it is short"));
            script.u8(0xA0).u8(0).chunk(&request)
        });
    // A replay with its subscriber, a bound that moves, and data meanwhile.
    let bounded = kinds
        .iter()
        .position(|(template, ..)| *template == 18)
        .expect("it is in the table");
    let replayed = Composer::new()
        .u8(0xC2)
        .u8(0)
        .raw(&structured(bounded, 0, 0).done())
        .u8(0xE1)
        .u8(0xC1)
        .known(1)
        .u8(0xE2)
        .u8(0xC0)
        .u8(200)
        .u8(0xE3);
    each.chain([
        Seed::new("archive_requests", "all", all.done()),
        Seed::new("archive_requests", "raw", raw.done()),
        Seed::new("archive_requests", "replayed", replayed.done()),
    ])
    .collect()
}

/// Scripts of source archives, from the connection to the data.
fn hostile_sources() -> Vec<Seed> {
    let time = |script: Composer| script.u8(0xE1).u8(0xE1).u8(0xE1);
    // The session, the descriptor with seven values, a position, the session of the replay.
    let answer = |script: Composer| time(script).u8(2).known(0);
    let described = |script: Composer| {
        let script = time(script).u8(2);
        (0..7).fold(script, |script, _| script.known(0))
    };
    let replayed = |choice: u8| {
        let script = described(answer(Composer::new().u8(choice)));
        let script = answer(answer(script));
        (0..4).fold(script, |script, _| script.u8(0x60).u8(100).u8(20))
    };
    let ended = |choice: u8| time(replayed(choice)).u8(0xC0).u8(0xE4).done();
    vec![
        Seed::new("archive_source", "ipc", ended(0)),
        Seed::new("archive_source", "udp", ended(2)),
        Seed::new("archive_source", "extending", ended(8)),
        Seed::new("archive_source", "live", ended(0x30)),
        Seed::new(
            "archive_source",
            "refused",
            time(Composer::new().u8(0)).u8(0).known(0).done(),
        ),
        Seed::new(
            "archive_source",
            "silent",
            Composer::new().u8(0).u8(0xE4).u8(0xE4).done(),
        ),
        Seed::new(
            "archive_source",
            "revoked",
            replayed(0).u8(0xC2).u8(0xE2).u8(0x60).u8(9).u8(9).done(),
        ),
    ]
}
