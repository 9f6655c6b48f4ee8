// SPDX-License-Identifier: Apache-2.0
//! Directories that pass from an archive that was killed under load to one of the other implementation.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use taran::{ChannelUriBuilder, Client, ExclusivePublication};
use taran_archive_client::ArchiveClient;
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType};

use crate::archive_client::fixture::{TestArchive, await_recorded, message, publish};
use crate::archives::archive_tool;
use crate::exchange::await_true;
use crate::replications::expect_all;
use crate::require_java;

const STREAM: i32 = 1_001;
/// Terms and segments are full of frames without padding, each within one page: an official archive that finds another last
/// frame does not start (`docs/spec/archive.md` §3.6).
const FRAME: i64 = 1_024;
const LENGTH: usize = FRAME as usize - size_of::<DataHeader>();
const SEGMENT: i64 = 64 * 1024;
/// Session ids before and after. The driver knows the dead archive as a subscriber for seconds, to the first session only.
const SESSIONS: [i32; 2] = [41, 42];

fn channel(session: i32) -> String {
    format!("aeron:ipc?session-id={session}")
}

fn start_recording(client: &Client, archive: &mut ArchiveClient) -> (ExclusivePublication, i64) {
    let channel = channel(SESSIONS[0]);
    archive
        .start_recording(&channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    let publication = client
        .add_exclusive_publication(format!("{channel}|term-length=64k"), STREAM)
        .unwrap();
    let started = archive
        .wait_for_signal(|signal| signal.signal == RecordingSignal::START)
        .unwrap();
    (publication, started.recording_id)
}

/// Kills the archive while its recording grows. Returns the recording and the position behind its last frame on disk.
fn kill_under_load(tested: &mut TestArchive, client: &Client) -> (i64, i64) {
    let mut archive = tested.udp().connect(client).unwrap();
    let (mut publication, id) = start_recording(client, &mut archive);
    let stop = AtomicBool::new(false);
    let recorded = thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = 0;
            while !stop.load(Ordering::Relaxed) {
                match publication.offer(&message(next, LENGTH)) {
                    Ok(_) => next += 1,
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        thread::yield_now();
                    }
                }
            }
        });
        let mut recorded = 0;
        await_true("some segments", || {
            recorded = archive.max_recorded_position(id).unwrap();
            recorded > 3 * SEGMENT
        });
        tested.kill_process();
        stop.store(true, Ordering::Relaxed);
        recorded
    });
    let end = end_on_disk(tested.archive_dir(), id);
    assert!(
        end >= recorded,
        "the disk has {end} and {recorded} was acknowledged"
    );
    (id, end)
}

/// Walks over the frames of the newest segment that has any.
fn end_on_disk(directory: &Path, id: i64) -> i64 {
    let base = (0..)
        .map(|index| index * SEGMENT)
        .take_while(|base| directory.join(format!("{id}-{base}.rec")).exists())
        .last()
        .unwrap();
    let bytes = fs::read(directory.join(format!("{id}-{base}.rec"))).unwrap();
    let frames = bytes
        .chunks(FRAME as usize)
        .take_while(|frame| frame[..4] != [0; 4]);
    base + frames.count() as i64 * FRAME
}

/// Adds the beginning of a frame behind the end, of which a power loss has taken all pages but the first. Returns the bytes.
fn tear(directory: &Path, id: i64, end: i64) -> Vec<u8> {
    let term_id = first_term_id(directory, id) + i32::try_from(end / SEGMENT).unwrap();
    let header = DataHeader {
        header: FrameHeader::new(16 * 1024, DataHeader::UNFRAGMENTED, FrameType::DATA),
        term_offset: i32::try_from(end % SEGMENT).unwrap().into(),
        session_id: SESSIONS[0].into(),
        stream_id: STREAM.into(),
        term_id: term_id.into(),
        reserved_value: 0.into(),
    };
    let mut bytes = zerocopy::IntoBytes::as_bytes(&header).to_vec();
    bytes.resize(200, 7);
    let base = end / SEGMENT * SEGMENT;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(format!("{id}-{base}.rec")))
        .unwrap();
    file.set_len(SEGMENT as u64).unwrap();
    file.write_all_at(&bytes, (end - base) as u64).unwrap();
    bytes
}

/// Extends the recording with another publication, compares all of it, and ends the archive in order.
fn extend_and_end(tested: &mut TestArchive, client: &Client, id: i64, end: i64) {
    let mut archive = tested.udp().connect(client).unwrap();
    let archive = &mut archive;
    assert_eq!(archive.stop_position(id).unwrap(), Some(end));
    let described = archive.list_recording(id).unwrap().unwrap();
    let channel = channel(SESSIONS[1]);
    archive
        .extend_recording(id, &channel, STREAM, SourceLocation::LOCAL, false)
        .unwrap();
    let continued = ChannelUriBuilder::ipc()
        .session_id(SESSIONS[1])
        .initial_position(end, described.initial_term_id, SEGMENT as usize)
        .build()
        .unwrap();
    let mut publication = client
        .add_exclusive_publication(continued.as_str(), STREAM)
        .unwrap();
    let before = (end / FRAME) as u64;
    publish(archive, &mut publication, before..before + 200, LENGTH);
    await_recorded(archive, id, publication.position());
    archive.stop_recording(&channel, STREAM).unwrap();
    archive
        .wait_for_signal_of(id, RecordingSignal::STOP)
        .unwrap();
    let stop = end + 200 * FRAME;
    assert_eq!(archive.stop_position(id).unwrap(), Some(stop));
    expect_all(archive, id, before + 200, LENGTH);
    tested.end();
    let verified = archive_tool(tested.archive_dir(), &["verify", "-a"]);
    assert!(
        verified.contains(&format!("(recordingId={id}) OK")),
        "{verified}"
    );
}

#[test]
fn taran_archive_takes_over_from_an_official_one_that_was_killed_under_load() {
    require_java!();
    let mut tested = TestArchive::beside_taran("takeover-official-killed", &[]);
    let client = tested.client();
    let (id, end) = kill_under_load(&mut tested, &client);
    let torn = tear(tested.archive_dir(), id, end);

    // The official archive has no lock: its heartbeat is young, so it may be alive.
    tested.pass_on();
    tested.renew_mark_file();
    let refusal = tested.refused_launch();
    assert!(refusal.contains("shows an active archive"), "{refusal}");
    tested.age_mark_file();
    tested.launch();
    extend_and_end(&mut tested, &client, id, end);

    let base = end / SEGMENT * SEGMENT;
    let side = format!("{id}-{base}.rec.cut-{}", end - base);
    let kept = fs::read(tested.archive_dir().join(&side)).unwrap();
    assert_eq!(torn, kept[..torn.len()]);
    assert!(kept[torn.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn official_archive_takes_over_from_a_taran_one_that_was_killed_under_load() {
    require_java!();
    let mut tested = TestArchive::taran("takeover-taran-killed");
    let client = tested.client();
    let (id, end) = kill_under_load(&mut tested, &client);

    tested.pass_on();
    tested.renew_mark_file();
    let refusal = tested.refused_launch();
    assert!(refusal.contains("active mark file"), "{refusal}");
    tested.age_mark_file();
    tested.launch();
    extend_and_end(&mut tested, &client, id, end);
}

/// Returns the term id in the first frame of a recording.
fn first_term_id(directory: &Path, id: i64) -> i32 {
    let bytes = fs::read(directory.join(format!("{id}-0.rec"))).unwrap();
    let header = zerocopy::FromBytes::ref_from_prefix(&bytes);
    let (header, _): (&DataHeader, _) = header.unwrap();
    header.term_id.get()
}
