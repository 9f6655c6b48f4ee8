// SPDX-License-Identifier: Apache-2.0
//! The prices of one side of a book.

use super::{NONE, PRICES, Side};

/// Bits of a word of the bitmaps.
const WORD: usize = 64;
const WORDS: usize = PRICES as usize / WORD;
const SUMMARY: usize = WORDS / WORD;

/// Orders of one price: a list, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) head: u32,
    tail: u32,
    pub(super) quantity: u64,
}

/// Levels by price, and a bitmap of those with orders, with a bitmap of its words that are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ladder {
    levels: Box<[Level]>,
    words: Box<[u64]>,
    summary: [u64; SUMMARY],
}

impl Ladder {
    pub(super) fn new() -> Self {
        let empty = Level {
            head: NONE,
            tail: NONE,
            quantity: 0,
        };
        Self {
            levels: vec![empty; PRICES as usize].into(),
            words: vec![0; WORDS].into(),
            summary: [0; SUMMARY],
        }
    }

    pub(super) fn level(&self, price: u32) -> &Level {
        &self.levels[price as usize]
    }

    /// Returns the highest price of buyers, or the lowest one of sellers.
    pub(super) fn best(&self, side: Side) -> Option<u32> {
        let bit = |word: u64| match side {
            Side::Buy => WORD - 1 - word.leading_zeros() as usize,
            Side::Sell => word.trailing_zeros() as usize,
        };
        let is_set = |index: &usize| self.summary[*index] != 0;
        let summary = match side {
            Side::Buy => (0..SUMMARY).rev().find(is_set)?,
            Side::Sell => (0..SUMMARY).find(is_set)?,
        };
        let word = summary * WORD + bit(self.summary[summary]);
        let price = word * WORD + bit(self.words[word]);
        Some(price as u32)
    }

    /// Appends an order. Returns the one before it, or [`NONE`].
    pub(super) fn append(&mut self, price: u32, order: u32, quantity: u32) -> u32 {
        let level = &mut self.levels[price as usize];
        let last = level.tail;
        if last == NONE {
            level.head = order;
            let word = price as usize / WORD;
            self.words[word] |= 1 << (price as usize % WORD);
            self.summary[word / WORD] |= 1 << (word % WORD);
        }
        level.tail = order;
        level.quantity += u64::from(quantity);
        last
    }

    /// Subtracts what was traded.
    pub(super) fn fill(&mut self, price: u32, quantity: u32) {
        self.levels[price as usize].quantity -= u64::from(quantity);
    }

    /// Removes the order between these two, with the quantity that it has left.
    pub(super) fn remove(&mut self, price: u32, quantity: u32, previous: u32, next: u32) {
        let level = &mut self.levels[price as usize];
        level.quantity -= u64::from(quantity);
        if previous == NONE {
            level.head = next;
        }
        if next == NONE {
            level.tail = previous;
        }
        if level.head == NONE {
            let word = price as usize / WORD;
            self.words[word] &= !(1 << (price as usize % WORD));
            if self.words[word] == 0 {
                self.summary[word / WORD] &= !(1 << (word % WORD));
            }
        }
    }
}
