// SPDX-License-Identifier: Apache-2.0
//! One recording: from its image to its writer.

use taran::{Counter, Image};
use taran_archive_client::protocol::{RecordingProgress, RecordingStarted, RecordingStopped};
use taran_protocol::frame::FrameType;
use taran_storage::Completion;

use super::block::{Block, DamagedFrame, StreamFrames};
use super::events::RecordingEvents;
use super::writer::{Completed, SegmentWriter, WriterStatus};
use super::{RecorderOptions, RecorderReport, RecordingFailure, RecordingSpec};
use crate::buffers::BufferPool;
use crate::disk_io::DiskIo;
use crate::files::Checksum;
use crate::outgoing::Outgoing;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    /// The image is not polled any more.
    Ending,
    /// The writer writes its last blocks.
    Closing,
    Closed,
}

/// A recording.
///
/// Contract: [`poll`](Self::poll) in each duty cycle moves frames from the image to the writer and the recorded position
/// behind the writer. It ends with the image, by [`stop`](Self::stop), or by a failure, and reports that once.
#[derive(Debug)]
pub(super) struct Recording {
    id: i64,
    state: State,
    image: Image,
    stream: StreamFrames,
    checksum: Option<Checksum>,
    /// Frames that were taken from the image and not given to the writer yet.
    filling: Option<Block>,
    /// Position of the next frame to take.
    next: i64,
    writer: SegmentWriter,
    position: Counter,
    recorded: i64,
    announced: i64,
    join_position: i64,
    is_held: bool,
    failure: Option<RecordingFailure>,
    block_length: usize,
}

impl Recording {
    pub(super) fn start(
        spec: RecordingSpec,
        options: &RecorderOptions,
        token: u64,
        io: &mut DiskIo,
        events: &mut RecordingEvents,
    ) -> Self {
        let RecordingSpec {
            start,
            image,
            position,
            original_channel,
        } = spec;
        let mut writer = SegmentWriter::new(options.writer.clone(), start, token);
        writer.open(io);
        events.started(&RecordingStarted {
            recording_id: start.recording_id,
            start_position: start.position,
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            channel: &original_channel,
            source_identity: image.source_identity(),
        });
        Self {
            id: start.recording_id,
            state: State::Active,
            stream: StreamFrames {
                terms: start.layout.terms(),
                session_id: image.session_id(),
                stream_id: image.stream_id(),
            },
            checksum: options.checksum,
            filling: None,
            next: start.position,
            writer,
            position,
            recorded: start.position,
            announced: start.position,
            join_position: start.position,
            is_held: false,
            failure: None,
            block_length: options.block_length,
            image,
        }
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Returns true if the recording has ended and was reported.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Ends the recording at what was taken from the image.
    pub(super) fn stop(&mut self) {
        if self.state == State::Active {
            self.state = State::Ending;
        }
    }

    pub(super) fn on_completion(
        &mut self,
        completion: Completion,
        now_ns: i64,
        io: &mut DiskIo,
    ) -> Completed {
        self.writer.on_completion(completion, now_ns, io)
    }

    pub(super) fn poll(
        &mut self,
        now_ns: i64,
        io: &mut DiskIo,
        buffers: &mut BufferPool,
        events: &mut RecordingEvents,
        reports: &mut Outgoing<RecorderReport>,
    ) -> usize {
        self.writer.tick(now_ns, io);
        self.check_writer(reports);
        let mut work = 0;
        if self.state == State::Active {
            work += self.take_frames(io, buffers);
        }
        self.push_block(io);
        if self.state == State::Ending && self.filling.is_none() {
            self.state = State::Closing;
            self.writer.close(io);
        }
        while let Some(buffer) = self.writer.take_buffer() {
            buffers.give_back(buffer);
        }
        if self.failure.is_some()
            && let Some(block) = self.filling.take()
        {
            buffers.give_back(block.into_buffer());
        }
        work += self.announce(events);
        if self.state == State::Closing && self.writer.is_closed() {
            self.state = State::Closed;
            events.stopped(&RecordingStopped {
                recording_id: self.id,
                start_position: self.join_position,
                stop_position: self.recorded,
            });
            reports.send(RecorderReport::Stopped {
                recording_id: self.id,
                position: self.recorded,
                failure: self.failure.take(),
            });
            work += 1;
        }
        work
    }

    fn check_writer(&mut self, reports: &mut Outgoing<RecorderReport>) {
        let recording_id = self.id;
        match self.writer.status() {
            WriterStatus::Working if self.is_held => {
                self.is_held = false;
                reports.send(RecorderReport::Resumed { recording_id });
            }
            WriterStatus::Held(error) if !self.is_held => {
                self.is_held = true;
                let text = error.to_string();
                reports.send(RecorderReport::Held { recording_id, text });
            }
            WriterStatus::Failed(error) if self.failure.is_none() => {
                self.failure = Some(RecordingFailure {
                    is_full: error.is_full(),
                    text: error.to_string(),
                });
                self.stop();
            }
            _ => {}
        }
    }

    /// Takes frames from the image, at most one block per duty cycle beyond that which is being filled.
    fn take_frames(&mut self, io: &mut DiskIo, buffers: &mut BufferPool) -> usize {
        let mut taken = 0;
        while taken < self.block_length {
            let block = if let Some(block) = &mut self.filling {
                block
            } else {
                // A full disk holds the publisher back.
                if self.is_held {
                    break;
                }
                let Some(buffer) = buffers.take() else { break };
                self.filling.insert(Block::new(buffer, self.next))
            };
            let room = block.room().min(
                self.writer
                    .left_in_segment(block.start())
                    .saturating_sub(block.length()),
            );
            let (stream, checksum) = (&self.stream, self.checksum);
            let mut damaged = None;
            let polled = if room == 0 {
                0
            } else {
                self.image.block_poll(
                    |polled| {
                        let (frames, span) = frames_of(polled.bytes());
                        damaged = block.append(frames, span, stream, checksum).err();
                    },
                    room,
                )
            };
            self.next = block.end();
            taken += polled;
            if let Some(error) = damaged {
                self.fail(&error);
                return taken;
            }
            if polled == 0 {
                let is_empty = block.is_empty();
                if is_empty {
                    self.give_back_filling(buffers);
                }
                if !is_empty && self.writer.has_room() {
                    // The next frame may be longer than the rest of the block.
                    self.push_block(io);
                    if room < self.image.mtu() {
                        continue;
                    }
                }
                if is_empty && (self.image.is_closed() || self.image.is_end_of_stream()) {
                    self.state = State::Ending;
                }
                break;
            }
        }
        taken
    }

    fn give_back_filling(&mut self, buffers: &mut BufferPool) {
        if let Some(block) = self.filling.take() {
            buffers.give_back(block.into_buffer());
        }
    }

    fn fail(&mut self, error: &DamagedFrame) {
        self.failure = Some(RecordingFailure {
            is_full: false,
            text: error.to_string(),
        });
        self.stop();
    }

    fn push_block(&mut self, io: &mut DiskIo) {
        if self.writer.has_room()
            && self.filling.as_ref().is_some_and(|block| !block.is_empty())
            && let Some(block) = self.filling.take()
        {
            self.writer.push(block, io);
        }
    }

    /// Publishes the position up to which the recording is acknowledged.
    fn announce(&mut self, events: &mut RecordingEvents) -> usize {
        let position = self.writer.position();
        let has_moved = position > self.recorded;
        if has_moved {
            self.recorded = position;
            self.position.set(position);
        }
        if self.recorded > self.announced {
            let progress = RecordingProgress {
                recording_id: self.id,
                start_position: self.join_position,
                position: self.recorded,
            };
            if events.progress(&progress) {
                self.announced = self.recorded;
            }
        }
        usize::from(has_moved)
    }
}

/// Returns the bytes to copy of a polled block, and its length in the stream. Of padding only the header is there.
fn frames_of(bytes: &[u8]) -> (&[u8], usize) {
    let is_padding = bytes.get(6..8) == Some(&FrameType::PAD.0.to_le_bytes());
    let copied = if is_padding {
        HEADER.min(bytes.len())
    } else {
        bytes.len()
    };
    (&bytes[..copied], bytes.len())
}
