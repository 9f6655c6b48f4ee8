// SPDX-License-Identifier: Apache-2.0
//! The writer on a simulated disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use taran_sim::disk::{ProcessDisk, SimDisk, SimDiskOptions};
use taran_storage::{
    AlignedBuf, Disk, ErrorKind, InlineQueue, OpenOptions, Operation, RejectReason,
};

use super::block::Block;
use super::block::testing::{TERM, frame, padding, stream};
use super::writer::{SegmentWriter, WriterOptions, WriterStart, WriterStatus, segment_path};
use crate::config::DiskFullPolicy;
use crate::disk_io::DiskIo;
use crate::disk_io::testing::EndingQueue;
use crate::files::{RecordingLayout, SyncLevel};

const SEGMENT: i32 = 2 * TERM;
const SECOND: i64 = 1_000_000_000;

struct Fixture {
    disk: SimDisk,
    process: ProcessDisk,
    io: DiskIo,
    queue_has_ended: Arc<AtomicBool>,
    writer: SegmentWriter,
    next: i64,
    now_ns: i64,
}

fn directory() -> PathBuf {
    PathBuf::from("/archive")
}

impl Fixture {
    fn new(sync: SyncLevel) -> Self {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        disk.process().create_directory(&directory()).unwrap();
        disk.process().sync_directory(Path::new("/")).unwrap();
        Self::at(&disk, 0, false, sync, DiskFullPolicy::Hold)
    }

    fn at(
        disk: &SimDisk,
        position: i64,
        is_extension: bool,
        sync: SyncLevel,
        disk_full: DiskFullPolicy,
    ) -> Self {
        let start = WriterStart {
            recording_id: 5,
            layout: RecordingLayout::new(0, 7, TERM, SEGMENT).unwrap(),
            position,
            is_extension,
        };
        Self::from(disk, start, sync, disk_full)
    }

    fn from(
        disk: &SimDisk,
        start: WriterStart,
        sync: SyncLevel,
        disk_full: DiskFullPolicy,
    ) -> Self {
        let process = disk.process();
        let shared: Arc<dyn Disk> = Arc::new(process.clone());
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut io = DiskIo::new(Box::new(EndingQueue {
            inner: InlineQueue::new(&shared, 2, 64, ()),
            has_ended: Arc::clone(&has_ended),
        }));
        let options = WriterOptions {
            directory: directory(),
            sync,
            disk_full,
        };
        let position = start.position;
        let mut writer = SegmentWriter::new(options, start, 0);
        writer.open(&mut io);
        Self {
            disk: disk.clone(),
            process,
            io,
            queue_has_ended: has_ended,
            writer,
            next: position,
            now_ns: 0,
        }
    }

    /// Pushes a block of one frame with a body of `length` bytes.
    fn push(&mut self, length: usize, fill: u8) {
        let mut block = Block::new(AlignedBuf::new(TERM as usize), self.next);
        let bytes = frame(&stream(), self.next, length, fill);
        block.append(&bytes, bytes.len(), &stream(), None).unwrap();
        self.next = block.end();
        self.writer.push(block, &mut self.io);
    }

    /// Pushes padding up to the end of the term.
    fn pad(&mut self) {
        let length = (TERM - stream().terms.term_offset(self.next)) as usize;
        let mut block = Block::new(AlignedBuf::new(TERM as usize), self.next);
        let header = padding(&stream(), self.next, length);
        block.append(&header, length, &stream(), None).unwrap();
        self.next = block.end();
        self.writer.push(block, &mut self.io);
    }

    fn run(&mut self) {
        while let Some(completion) = self.io.poll(self.now_ns) {
            self.writer
                .on_completion(completion, self.now_ns, &mut self.io);
        }
        self.writer.tick(self.now_ns, &mut self.io);
        while let Some(completion) = self.io.poll(self.now_ns) {
            self.writer
                .on_completion(completion, self.now_ns, &mut self.io);
        }
    }

    fn bytes(&self, base: i64) -> Vec<u8> {
        let process = self.disk.process();
        let file = process
            .open(&segment_path(&directory(), 5, base), OpenOptions::read())
            .unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    fn names(&self) -> Vec<String> {
        let entries = self.disk.process().list(&directory()).unwrap();
        entries
            .iter()
            .map(|entry| entry.name.to_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn writer_acknowledges_what_is_written_and_fills_files_with_zeros() {
    let mut fixture = Fixture::new(SyncLevel::None);
    fixture.push(96, 1);
    assert_eq!(fixture.writer.position(), 0);
    fixture.run();
    assert_eq!(fixture.writer.position(), 128);
    let bytes = fixture.bytes(0);
    assert_eq!(bytes.len(), SEGMENT as usize);
    assert_eq!(bytes[..128], frame(&stream(), 0, 96, 1));
    assert!(bytes[128..].iter().all(|byte| *byte == 0));
}

#[test]
fn writer_rolls_to_the_next_segment_when_a_frame_for_it_is_there() {
    let mut fixture = Fixture::new(SyncLevel::Data);
    fixture.push(32, 1);
    fixture.pad();
    fixture.run();
    fixture.push(32, 2);
    fixture.pad();
    fixture.run();
    assert_eq!(fixture.writer.position(), i64::from(SEGMENT));
    // The next file is there, under a name that no recovery takes for a segment.
    assert_eq!(fixture.names(), ["5-0.rec", "5-131072.rec.next"]);
    fixture.push(32, 3);
    fixture.run();
    assert_eq!(fixture.writer.position(), i64::from(SEGMENT) + 64);
    assert_eq!(fixture.names(), ["5-0.rec", "5-131072.rec"]);
    let bytes = fixture.bytes(0);
    assert_eq!(bytes[64..96], padding(&stream(), 64, TERM as usize - 64));
    assert!(bytes[96..TERM as usize].iter().all(|byte| *byte == 0));
    assert_eq!(
        fixture.bytes(i64::from(SEGMENT))[..64],
        frame(&stream(), i64::from(SEGMENT), 32, 3)
    );
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed() && fixture.io.is_idle());
}

#[test]
fn acknowledged_position_survives_a_power_cut_at_level_data() {
    for blocks in 0..20 {
        let mut fixture = Fixture::new(SyncLevel::Data);
        let mut lengths = Vec::new();
        for block in 0..blocks {
            if fixture.writer.has_room() {
                fixture.push(32 * (block % 3 + 1), block as u8 + 1);
                lengths.push(fixture.next);
            }
            // Only some of what is in flight completes.
            if let Some(completion) = fixture.io.poll(0) {
                fixture.writer.on_completion(completion, 0, &mut fixture.io);
            }
        }
        let position = fixture.writer.position();
        fixture.disk.power_cut();
        if position > 0 {
            let bytes = fixture.bytes(0);
            let mut at = 0_usize;
            while (at as i64) < position {
                let length = i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                assert!(
                    length > 32,
                    "{blocks} blocks: nothing at {at} of {position}"
                );
                at += (length as usize).next_multiple_of(32);
            }
            assert_eq!(at as i64, position);
        }
    }
}

#[test]
fn full_disk_holds_blocks_until_there_is_space() {
    for sync in [SyncLevel::None, SyncLevel::Data] {
        let mut fixture = Fixture::new(sync);
        fixture.push(32, 1);
        fixture.run();
        fixture.disk.fill(0);
        fixture.push(8192, 2);
        fixture.push(4096, 3);
        fixture.run();
        assert!(
            matches!(fixture.writer.status(), WriterStatus::Held(_)),
            "{sync:?}"
        );
        assert!(!fixture.writer.has_room());
        assert_eq!(fixture.writer.position(), 64);
        fixture.now_ns = SECOND;
        fixture.run();
        assert!(matches!(fixture.writer.status(), WriterStatus::Held(_)));
        fixture.disk.restore_capacity();
        fixture.now_ns = 2 * SECOND;
        fixture.run();
        assert_eq!(fixture.writer.status(), WriterStatus::Working);
        assert_eq!(fixture.writer.position(), fixture.next);
        let bytes = fixture.bytes(0);
        assert_eq!(bytes[64..64 + 8224], frame(&stream(), 64, 8192, 2));
        assert_eq!(bytes[8288..8288 + 4128], frame(&stream(), 8288, 4096, 3));
    }
}

#[test]
fn full_disk_stops_by_policy_and_when_asked_to_stop() {
    for policy in [DiskFullPolicy::Stop, DiskFullPolicy::Hold] {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        disk.process().create_directory(&directory()).unwrap();
        let mut fixture = Fixture::at(&disk, 0, false, SyncLevel::None, policy);
        fixture.push(32, 1);
        fixture.run();
        fixture.disk.fill(0);
        fixture.push(8192, 2);
        fixture.run();
        fixture.writer.close(&mut fixture.io);
        fixture.run();
        let WriterStatus::Failed(error) = fixture.writer.status() else {
            panic!("not failed")
        };
        assert!(error.is_full());
        assert_eq!(fixture.writer.position(), 64);
        assert!(fixture.writer.take_buffer().is_some());
        assert!(fixture.writer.is_closed());
    }
}

#[test]
fn blocks_that_were_given_up_are_not_acknowledged_by_later_completions() {
    for sync in [SyncLevel::None, SyncLevel::Data] {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        disk.process().create_directory(&directory()).unwrap();
        let mut fixture = Fixture::at(&disk, 0, false, sync, DiskFullPolicy::Stop);
        fixture.push(32, 1);
        fixture.run();
        fixture.disk.fill(0);
        fixture.push(8192, 2);
        fixture.push(4096, 3);
        // The owner takes buffers back between the completions.
        let mut given_up = 0;
        while let Some(completion) = fixture.io.poll(0) {
            fixture.writer.on_completion(completion, 0, &mut fixture.io);
            while fixture.writer.take_buffer().is_some() {
                given_up += 1;
            }
            assert_eq!(fixture.writer.position(), 64, "{sync:?}");
        }
        assert_eq!(given_up, 2);
        fixture.writer.close(&mut fixture.io);
        fixture.run();
        assert!(fixture.writer.is_closed());
        assert_eq!(fixture.writer.position(), 64, "{sync:?}");
    }
}

#[test]
fn failed_sync_ends_the_recording_at_what_was_durable() {
    let mut fixture = Fixture::new(SyncLevel::Data);
    fixture.push(32, 1);
    fixture.run();
    fixture.disk.fail_next(Operation::Sync);
    fixture.push(32, 2);
    fixture.run();
    assert!(matches!(fixture.writer.status(), WriterStatus::Failed(_)));
    assert_eq!(fixture.writer.position(), 64);
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed());
}

#[test]
fn failed_write_ends_the_recording() {
    let mut fixture = Fixture::new(SyncLevel::None);
    fixture.run();
    fixture.disk.fail_next(Operation::Write);
    fixture.push(32, 1);
    fixture.push(32, 2);
    fixture.run();
    assert!(matches!(fixture.writer.status(), WriterStatus::Failed(_)));
    assert_eq!(fixture.writer.position(), 0);
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed());
}

#[test]
fn extension_continues_the_file_and_clears_what_follows() {
    let mut fixture = Fixture::new(SyncLevel::None);
    fixture.push(32, 1);
    fixture.push(4096, 9);
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed());
    // The recording is truncated to its first frame, and extended.
    let mut extended = Fixture::at(
        &fixture.disk,
        64,
        true,
        SyncLevel::Data,
        DiskFullPolicy::Hold,
    );
    extended.push(32, 2);
    extended.run();
    assert_eq!(extended.writer.position(), 128);
    let bytes = extended.bytes(0);
    assert_eq!(bytes[..64], frame(&stream(), 0, 32, 1));
    assert_eq!(bytes[64..128], frame(&stream(), 64, 32, 2));
    assert!(bytes[128..].iter().all(|byte| *byte == 0));
    assert_eq!(bytes.len(), SEGMENT as usize);
}

#[test]
fn extension_of_an_empty_recording_makes_its_file_where_it_starts() {
    let fixture = Fixture::new(SyncLevel::Data);
    let start = WriterStart {
        recording_id: 5,
        layout: RecordingLayout::new(96, 7, TERM, SEGMENT).unwrap(),
        position: 96,
        is_extension: true,
    };
    for frames in [2, 1] {
        // The second time the file is there, and what was not acknowledged is cleared.
        let mut extended =
            Fixture::from(&fixture.disk, start, SyncLevel::Data, DiskFullPolicy::Hold);
        for value in 1..=frames {
            extended.push(32, value);
        }
        extended.run();
        let end = 96 + 64 * usize::from(frames);
        assert_eq!(extended.writer.position(), end as i64);
        let bytes = extended.bytes(0);
        assert!(bytes[..96].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[96..160], frame(&stream(), 96, 32, 1));
        assert!(bytes[end..].iter().all(|byte| *byte == 0));
        assert_eq!(bytes.len(), SEGMENT as usize);
    }
}

#[test]
fn extension_without_its_file_and_new_recording_with_one_are_refused() {
    let fixture = Fixture::new(SyncLevel::None);
    let mut extended = Fixture::at(
        &fixture.disk,
        64,
        true,
        SyncLevel::None,
        DiskFullPolicy::Hold,
    );
    extended.run();
    assert!(matches!(extended.writer.status(), WriterStatus::Failed(_)));
    let path = segment_path(&directory(), 5, 0);
    let file = fixture
        .process
        .open(&path, OpenOptions::create_new())
        .unwrap();
    file.write_at(b"data", 0).unwrap();
    let mut again = Fixture::at(
        &fixture.disk,
        0,
        false,
        SyncLevel::None,
        DiskFullPolicy::Hold,
    );
    again.push(32, 1);
    again.run();
    assert!(matches!(again.writer.status(), WriterStatus::Failed(_)));
    assert_eq!(&again.bytes(0), b"data");
}

#[test]
fn next_segment_is_made_ahead_and_removed_if_it_is_not_needed() {
    let mut fixture = Fixture::new(SyncLevel::Data);
    fixture.push(32, 1);
    fixture.run();
    assert_eq!(fixture.names(), ["5-0.rec"]);
    fixture.pad();
    fixture.run();
    assert_eq!(fixture.names(), ["5-0.rec", "5-131072.rec.next"]);
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed());
    assert_eq!(fixture.names(), ["5-0.rec"]);
}

#[test]
fn frames_of_the_next_segment_are_acknowledged_when_it_has_its_name() {
    for sync in [SyncLevel::None, SyncLevel::Data] {
        let mut fixture = Fixture::new(sync);
        fixture.pad();
        fixture.run();
        fixture.pad();
        fixture.push(32, 3);
        let mut steps = Vec::new();
        while fixture.writer.position() <= i64::from(SEGMENT) {
            let completion = fixture.io.poll(0).expect("something is in flight");
            fixture.writer.on_completion(completion, 0, &mut fixture.io);
            steps.push(fixture.names());
        }
        assert_eq!(
            steps.last().map(Vec::as_slice),
            Some(&["5-0.rec".to_owned(), "5-131072.rec".to_owned()][..])
        );
        fixture
            .disk
            .process()
            .sync_directory(Path::new("/"))
            .unwrap();
        if sync == SyncLevel::Data {
            fixture.disk.power_cut();
            let bytes = fixture.bytes(i64::from(SEGMENT));
            assert_eq!(bytes[..64], frame(&stream(), i64::from(SEGMENT), 32, 3));
        }
    }
}

#[test]
fn segment_that_cannot_be_made_ahead_is_made_when_it_is_needed() {
    let mut fixture = Fixture::new(SyncLevel::Data);
    let path = segment_path(&directory(), 5, i64::from(SEGMENT));
    let file = fixture
        .process
        .open(&path, OpenOptions::create_new())
        .unwrap();
    file.write_at(b"data", 0).unwrap();
    fixture.pad();
    fixture.run();
    assert_eq!(fixture.writer.status(), WriterStatus::Working);
    assert_eq!(fixture.names(), ["5-0.rec", "5-131072.rec"]);
    fixture.pad();
    fixture.run();
    assert_eq!(fixture.writer.position(), i64::from(SEGMENT));
    // The name is taken, as Aeron finds out at this time, too.
    fixture.push(32, 1);
    fixture.run();
    assert!(matches!(fixture.writer.status(), WriterStatus::Failed(_)));
    assert_eq!(fixture.writer.position(), i64::from(SEGMENT));
    assert_eq!(&fixture.bytes(i64::from(SEGMENT))[..4], b"data");
}

#[test]
fn full_disk_at_a_segment_boundary_holds_what_is_in_the_next_segment() {
    let mut fixture = Fixture::new(SyncLevel::Data);
    fixture.pad();
    fixture.run();
    fixture.pad();
    fixture.run();
    fixture.disk.fill(0);
    fixture.push(8192, 2);
    fixture.run();
    assert!(matches!(fixture.writer.status(), WriterStatus::Held(_)));
    assert_eq!(fixture.writer.position(), i64::from(SEGMENT));
    fixture.disk.restore_capacity();
    fixture.now_ns = 2 * SECOND;
    fixture.run();
    assert_eq!(fixture.writer.position(), fixture.next);
    assert_eq!(
        fixture.bytes(i64::from(SEGMENT))[..8224],
        frame(&stream(), i64::from(SEGMENT), 8192, 2)
    );
    fixture.writer.close(&mut fixture.io);
    fixture.run();
    assert!(fixture.writer.is_closed());
    assert_eq!(fixture.names(), ["5-0.rec", "5-131072.rec"]);
}

#[test]
fn writer_fails_and_closes_after_the_threads_of_its_queue_have_ended() {
    for sync in [SyncLevel::None, SyncLevel::Data] {
        let mut fixture = Fixture::new(sync);
        fixture.push(96, 1);
        fixture.run();
        let position = fixture.writer.position();
        assert_eq!(128, position);
        fixture.queue_has_ended.store(true, Ordering::Relaxed);
        fixture.push(96, 2);
        fixture.run();
        let WriterStatus::Failed(error) = fixture.writer.status() else {
            panic!("the failure is told");
        };
        let reason = RejectReason::Stopped;
        assert_eq!(ErrorKind::Rejected { reason }, error.kind);
        assert!(
            fixture.writer.take_buffer().is_some(),
            "the block comes back"
        );
        fixture.writer.close(&mut fixture.io);
        fixture.run();
        assert!(fixture.writer.is_closed() && fixture.io.is_idle());
        assert_eq!(position, fixture.writer.position());
    }
}
