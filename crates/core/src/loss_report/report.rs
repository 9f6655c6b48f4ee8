// SPDX-License-Identifier: Apache-2.0
//! Writing the loss report.

use super::{CHANNEL_OFFSET, Header, LENGTH_FIELD, entry_length, source_offset};
use crate::ascii;
use crate::memory::{Region, Shared};
use crate::sync::Ordering;

/// Longest channel or source; longer ones are truncated.
const MAX_TEXT: usize = 4096;

/// Creates entries; owned by one thread.
#[derive(Debug)]
pub struct LossReport {
    region: Region,
    next: usize,
}

impl LossReport {
    /// A report in a zeroed region.
    pub fn open(region: Region) -> Self {
        Self { region, next: 0 }
    }

    /// Creates the entry of an image with its first loss, at `now_epoch_ms`. `channel` is the URI that
    /// created the endpoint, `source` the identity of the sender. `None` if the report is full.
    pub fn create_entry(
        &mut self,
        bytes_lost: i64,
        now_epoch_ms: i64,
        session_id: i32,
        stream_id: i32,
        channel: &str,
        source: &str,
    ) -> Option<LossEntry> {
        // The agent that detects the loss must not allocate, so texts are written directly into the region.
        let channel_length = stored(channel).count();
        let length = entry_length(channel_length, stored(source).count());
        let end = self
            .next
            .checked_add(length)
            .filter(|&end| end <= self.region.len())?;
        let header = self.region.overlay::<Header>(self.next).ok()?;

        self.write_text(self.next + CHANNEL_OFFSET, channel);
        self.write_text(self.next + source_offset(channel_length), source);
        header.bytes_lost.store(bytes_lost, Ordering::Relaxed);
        header.first_ms.store(now_epoch_ms, Ordering::Relaxed);
        header.last_ms.store(now_epoch_ms, Ordering::Relaxed);
        header.session_id.store(session_id, Ordering::Relaxed);
        header.stream_id.store(stream_id, Ordering::Relaxed);
        // Release: partner of the acquire in `read`.
        header.count.store(1, Ordering::Release);
        self.next = end;
        Some(LossEntry { header })
    }

    fn write_text(&self, offset: usize, text: &str) {
        let start = offset + LENGTH_FIELD;
        let mut length = 0;
        for byte in stored(text) {
            self.region.write(start + length, &[byte]);
            length += 1;
        }
        // MAX_TEXT keeps the length far below i32::MAX. Published with the entry.
        self.region
            .atomic_i32(offset)
            .store(length as i32, Ordering::Relaxed);
    }
}

/// A text as it is stored.
fn stored(text: &str) -> impl Iterator<Item = u8> + '_ {
    ascii::encode(text).take(MAX_TEXT)
}

/// The entry of one image; owned by the agent that detects its losses.
#[derive(Debug)]
pub struct LossEntry {
    header: Shared<Header>,
}

impl LossEntry {
    /// Adds one more loss, at `now_epoch_ms`.
    pub fn record(&self, bytes_lost: i64, now_epoch_ms: i64) {
        // Release: partner of the acquire in `read`.
        self.header.last_ms.store(now_epoch_ms, Ordering::Release);
        self.header
            .bytes_lost
            .fetch_add(bytes_lost, Ordering::AcqRel);
        self.header.count.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LossObservation, read};
    use super::*;

    fn contents(region: &Region) -> Vec<LossObservation> {
        let mut contents = Vec::new();
        read(region, |loss| contents.push(loss.clone()));
        contents
    }

    #[test]
    fn entries_are_made_and_grow() {
        let region = Region::anonymous(4096).unwrap();
        let mut report = LossReport::open(region.clone());
        let channel = "aeron:udp?endpoint=localhost:20121";
        let first = report
            .create_entry(64, 100, 3, 1001, channel, "127.0.0.1:5000")
            .unwrap();
        report.create_entry(1, 200, -4, 1002, "", "").unwrap();
        first.record(36, 300);
        let expected = [
            LossObservation {
                count: 2,
                bytes_lost: 100,
                first_ms: 100,
                last_ms: 300,
                session_id: 3,
                stream_id: 1001,
                channel: channel.into(),
                source: "127.0.0.1:5000".into(),
            },
            LossObservation {
                count: 1,
                bytes_lost: 1,
                first_ms: 200,
                last_ms: 200,
                session_id: -4,
                stream_id: 1002,
                channel: String::new(),
                source: String::new(),
            },
        ];
        assert_eq!(contents(&region), expected);
    }

    #[test]
    fn layout_is_as_specified() {
        let region = Region::anonymous(256).unwrap();
        let mut report = LossReport::open(region.clone());
        report.create_entry(9, 8, 7, 6, "abcde", "xy").unwrap();
        report.create_entry(1, 1, 1, 1, "", "").unwrap();
        for (offset, value) in [(0, 1), (8, 9), (16, 8), (24, 8), (64, 1)] {
            assert_eq!(
                region.atomic_i64(offset).load(Ordering::Relaxed),
                value,
                "at {offset}"
            );
        }
        for (offset, value) in [(32, 7), (36, 6), (40, 5), (52, 2)] {
            assert_eq!(
                region.atomic_i32(offset).load(Ordering::Relaxed),
                value,
                "at {offset}"
            );
        }
        assert_eq!(
            (region.bytes(44, 5), region.bytes(56, 2)),
            (&b"abcde"[..], &b"xy"[..])
        );
    }

    #[test]
    fn full_report_refuses() {
        let region = Region::anonymous(128).unwrap();
        let mut report = LossReport::open(region.clone());
        assert!(report.create_entry(1, 1, 1, 1, "a", "b").is_some());
        assert!(
            report
                .create_entry(1, 1, 1, 1, &"a".repeat(20), "b")
                .is_none()
        );
        assert!(
            report
                .create_entry(1, 1, 1, 1, &"a".repeat(12), "b")
                .is_some()
        );
        assert!(report.create_entry(1, 1, 1, 1, "", "").is_none());
        assert_eq!(contents(&region).len(), 2);
    }

    #[test]
    fn long_texts_are_cut() {
        let region = Region::anonymous(16 * 1024).unwrap();
        let mut report = LossReport::open(region.clone());
        let long = "\u{e9}".repeat(10_000);
        assert!(report.create_entry(1, 1, 1, 1, &long, &long).is_some());
        assert_eq!(contents(&region)[0].source, "?".repeat(MAX_TEXT));
    }
}
