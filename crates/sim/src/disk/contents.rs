// SPDX-License-Identifier: Apache-2.0
//! Contents of a simulated file: what reads return, and what a power cut can leave.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Unit of allocation in bytes.
pub(super) const PAGE: u64 = 4096;

type Page = Box<[u8; PAGE as usize]>;

/// A sector that was written after it was last durable.
#[derive(Debug)]
struct Unsynced {
    /// Durable bytes; `None` stands for zeros.
    before: Option<Box<[u8]>>,
    /// One of the values between the durable one and the current one.
    between: Option<Box<[u8]>>,
    /// Writes since the sector was durable.
    writes: u32,
    /// A sync failed: the device has the bytes before, and no later sync writes the current ones.
    is_lost: bool,
}

/// Contents of a file.
#[derive(Debug)]
pub(super) struct Contents {
    /// Bytes that reads return; `None` stands for zeros.
    pages: Vec<Option<Page>>,
    len: u64,
    durable_len: u64,
    sector: usize,
    unsynced: BTreeMap<u64, Unsynced>,
    /// Pages with blocks on the device, reserved ones included.
    held: Vec<bool>,
    held_pages: u64,
    /// Page ranges reserved since the last sync.
    unsynced_reservations: Vec<(u64, u64)>,
}

/// Outcome of the unsynced sectors of a file at a power cut. Modes with one rule for all sectors find more defects than
/// independent decisions alone.
#[derive(Clone, Copy)]
enum UnsyncedSectors {
    AllLost,
    AllKept,
    /// Sectors below a random one are kept.
    FirstKept,
    /// Sectors from a random one on are kept, although others were written before.
    LastKept,
    EachAtRandom,
}

impl Contents {
    pub(super) fn new(sector: usize) -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
            durable_len: 0,
            sector,
            unsynced: BTreeMap::new(),
            held: Vec::new(),
            held_pages: 0,
            unsynced_reservations: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes of the device that the file occupies.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_pages * PAGE
    }

    /// Returns the bytes that a range needs in addition.
    pub(super) fn missing_bytes(&self, offset: u64, len: u64) -> u64 {
        let missing = pages_of(offset, len).filter(|page| !self.holds(*page));
        missing.count() as u64 * PAGE
    }

    /// Returns true if there are unsynced bytes that a sync would write, or an unsynced length.
    pub(super) fn is_dirty(&self) -> bool {
        self.len != self.durable_len
            || !self.unsynced_reservations.is_empty()
            || self.unsynced.values().any(|sector| !sector.is_lost)
    }

    fn holds(&self, page: u64) -> bool {
        self.held.get(index(page)).copied().unwrap_or(false)
    }

    fn hold(&mut self, page: u64) {
        let page = index(page);
        if page >= self.held.len() {
            self.held.resize(page + 1, false);
        }
        if !self.held[page] {
            self.held[page] = true;
            self.held_pages += 1;
        }
    }

    fn release(&mut self, page: usize) {
        if self.held.get(page) == Some(&true) {
            self.held[page] = false;
            self.held_pages -= 1;
        }
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let len = usize::try_from(self.len.saturating_sub(offset))
            .map_or(buffer.len(), |left| left.min(buffer.len()));
        let mut done = 0;
        while done < len {
            let (page, start) = locate(offset + done as u64);
            let count = (PAGE as usize - start).min(len - done);
            let target = &mut buffer[done..done + count];
            match self.pages.get(page).and_then(Option::as_ref) {
                Some(bytes) => target.copy_from_slice(&bytes[start..start + count]),
                None => target.fill(0),
            }
            done += count;
        }
        len
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64, rng: &mut Rng) {
        if bytes.is_empty() {
            return;
        }
        self.record(offset, bytes.len() as u64, rng);
        for page in pages_of(offset, bytes.len() as u64) {
            self.hold(page);
        }
        self.copy_in(bytes, offset);
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Stores bytes without a record of the old ones.
    fn copy_in(&mut self, bytes: &[u8], offset: u64) {
        let mut done = 0;
        while done < bytes.len() {
            let (page, start) = locate(offset + done as u64);
            let count = (PAGE as usize - start).min(bytes.len() - done);
            if page >= self.pages.len() {
                self.pages.resize_with(page + 1, || None);
            }
            let target = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE as usize]));
            target[start..start + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }

    /// Stores zeros without a record of the old bytes; touches only pages that exist.
    fn zero(&mut self, offset: u64, end: u64) {
        let mut at = offset;
        while at < end {
            let (page, start) = locate(at);
            if page >= self.pages.len() {
                return;
            }
            let count = (PAGE - start as u64).min(end - at);
            if count == PAGE {
                self.pages[page] = None;
            } else if let Some(bytes) = &mut self.pages[page] {
                bytes[start..start + count as usize].fill(0);
            }
            at += count;
        }
    }

    /// Returns the bytes of a sector; `None` stands for zeros.
    fn sector(&self, number: u64) -> Option<&[u8]> {
        let (page, start) = locate(number * self.sector as u64);
        let bytes = self.pages.get(page)?.as_ref()?;
        Some(&bytes[start..start + self.sector])
    }

    /// Notes the bytes that the sectors of a range have before a write.
    fn record(&mut self, offset: u64, len: u64, rng: &mut Rng) {
        let sector = self.sector as u64;
        for number in offset / sector..(offset + len).div_ceil(sector) {
            let current = self.sector(number).map(Box::from);
            match self.unsynced.get_mut(&number) {
                None => {
                    let entry = Unsynced {
                        before: current,
                        between: None,
                        writes: 1,
                        is_lost: false,
                    };
                    self.unsynced.insert(number, entry);
                }
                Some(entry) => {
                    // Each value between is kept with the same probability.
                    if rng.u32(0..entry.writes) == 0 {
                        entry.between = current;
                    }
                    entry.writes += 1;
                    entry.is_lost = false;
                }
            }
        }
    }

    pub(super) fn set_len(&mut self, len: u64, rng: &mut Rng) {
        if len < self.len {
            self.clear(len, self.len, rng);
            for page in index(len.div_ceil(PAGE))..self.held.len() {
                self.release(page);
            }
        }
        self.len = len;
    }

    /// Reserves the pages of a range.
    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        let pages = pages_of(offset, len);
        self.unsynced_reservations.push((pages.start, pages.end));
        pages.for_each(|page| self.hold(page));
        self.len = self.len.max(offset + len);
    }

    pub(super) fn punch_hole(&mut self, offset: u64, len: u64, rng: &mut Rng) {
        let end = (offset + len).min(self.len);
        if offset >= end {
            return;
        }
        self.clear(offset, end, rng);
        for page in offset.div_ceil(PAGE)..end / PAGE {
            self.release(index(page));
        }
    }

    /// Writes zeros as far as there are other bytes.
    fn clear(&mut self, offset: u64, end: u64, rng: &mut Rng) {
        for page in pages_of(offset, end - offset) {
            let Ok(slot) = usize::try_from(page) else {
                return;
            };
            if slot >= self.pages.len() {
                break;
            }
            if self.pages[slot].is_some() {
                let start = offset.max(page * PAGE);
                let stop = end.min((page + 1) * PAGE);
                self.record(start, stop - start, rng);
            }
        }
        self.zero(offset, end);
    }

    /// Makes all durable that no failed sync has lost.
    pub(super) fn sync(&mut self) {
        self.unsynced.retain(|_, sector| sector.is_lost);
        self.durable_len = self.len;
        self.unsynced_reservations.clear();
    }

    /// Fails a sync: some of the unsynced sectors become durable, the others are lost. Lost ones can still be read, or the
    /// page cache drops them at once.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        self.unsynced
            .retain(|_, sector| sector.is_lost || rng.bool());
        let evict = rng.bool();
        for sector in self.unsynced.values_mut() {
            sector.is_lost = true;
        }
        if evict {
            for (number, sector) in std::mem::take(&mut self.unsynced) {
                self.restore(number, sector.before.as_deref());
            }
        }
    }

    /// Sets the bytes of a sector.
    fn restore(&mut self, number: u64, bytes: Option<&[u8]>) {
        let offset = number * self.sector as u64;
        match bytes {
            Some(bytes) => self.copy_in(bytes, offset),
            None => self.zero(offset, offset + self.sector as u64),
        }
    }

    /// Loses any part of what is not durable.
    pub(super) fn power_cut(&mut self, rng: &mut Rng, torn_sectors: bool) {
        let unsynced = std::mem::take(&mut self.unsynced);
        let fate = match rng.u32(0..6) {
            0 => UnsyncedSectors::AllLost,
            1 => UnsyncedSectors::AllKept,
            2 => UnsyncedSectors::FirstKept,
            3 => UnsyncedSectors::LastKept,
            _ => UnsyncedSectors::EachAtRandom,
        };
        let pivot = rng.usize(0..=unsynced.len());
        for (position, (number, sector)) in unsynced.into_iter().enumerate() {
            let keeps = match fate {
                _ if sector.is_lost => false,
                UnsyncedSectors::AllLost => false,
                UnsyncedSectors::AllKept => true,
                UnsyncedSectors::FirstKept => position < pivot,
                UnsyncedSectors::LastKept => position >= pivot,
                UnsyncedSectors::EachAtRandom => rng.bool(),
            };
            if keeps {
                if torn_sectors && rng.u32(0..8) == 0 {
                    self.tear(number, sector.before.as_deref(), rng);
                }
            } else if sector.writes > 1 && !sector.is_lost && rng.bool() {
                self.restore(number, sector.between.as_deref());
            } else {
                self.restore(number, sector.before.as_deref());
            }
        }
        let len = match rng.u32(0..3) {
            0 => self.durable_len,
            1 => self.len,
            _ if self.len > self.durable_len => rng.u64(self.durable_len..=self.len),
            _ => self.len,
        };
        for (start, end) in std::mem::take(&mut self.unsynced_reservations) {
            if rng.bool() {
                (start..end).for_each(|page| self.release(index(page)));
            }
        }
        self.zero(len, self.pages.len() as u64 * PAGE);
        for page in index(len.div_ceil(PAGE))..self.held.len() {
            self.release(page);
        }
        for page in 0..self.pages.len() {
            if self.pages[page].is_some() {
                self.hold(page as u64);
            }
        }
        (self.len, self.durable_len) = (len, len);
    }

    /// Leaves a mixture of old and new bytes in a sector.
    fn tear(&mut self, number: u64, before: Option<&[u8]>, rng: &mut Rng) {
        let offset = number * self.sector as u64;
        let cut = rng.usize(0..=self.sector);
        let old = if rng.bool() { cut..self.sector } else { 0..cut };
        let start = offset + old.start as u64;
        match before {
            Some(before) => self.copy_in(&before[old], start),
            None => self.zero(start, offset + old.end as u64),
        }
    }

    /// Flips a bit of the durable and current bytes of a page that has any. Returns its offset.
    pub(super) fn rot(&mut self, rng: &mut Rng) -> Option<u64> {
        let offset = rng.u64(0..self.len.max(1));
        let (page, start) = locate(offset);
        let bytes = self.pages.get_mut(page)?.as_mut()?;
        bytes[start] ^= 1 << rng.u32(0..8);
        Some(offset)
    }
}

fn index(page: u64) -> usize {
    usize::try_from(page).unwrap_or(usize::MAX)
}

/// Returns the page of an offset and the position in it.
fn locate(offset: u64) -> (usize, usize) {
    (index(offset / PAGE), (offset % PAGE) as usize)
}

fn pages_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    if len == 0 {
        return 0..0;
    }
    offset / PAGE..(offset + len).div_ceil(PAGE)
}
