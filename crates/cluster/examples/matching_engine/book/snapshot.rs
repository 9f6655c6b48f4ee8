// SPDX-License-Identifier: Apache-2.0
//! Items of a book in a snapshot: numbers of the book, then all slots.
//!
//! Free slots are written, too, because the order in which they are used again decides the ids of orders: members that begin with
//! the snapshot have to give the same ids as those that go on without it.

use super::super::support::chunks::{u32_at, u64_at};
use super::{Book, NONE, PRICES, Side, Slot};

/// Kind of an item.
const BOOK: u8 = 0;
const SLOT: u8 = 1;

impl Book {
    /// Returns the number of [`items`](Self::items).
    pub(crate) fn item_count(&self) -> usize {
        1 + self.slots.len()
    }

    /// Returns the items of the book as it is now. They are made from a copy of its slots.
    pub(crate) fn items(&self) -> impl Iterator<Item = Vec<u8>> + Send + use<> {
        let capacity = (self.capacity as u32).to_le_bytes();
        let (free, arrivals) = (self.free.to_le_bytes(), self.arrivals.to_le_bytes());
        let book = [&[BOOK], &capacity[..], &free, &arrivals].concat();
        std::iter::once(book).chain(self.slots.clone().into_iter().map(slot_item))
    }
}

fn slot_item(slot: Slot) -> Vec<u8> {
    [
        &[SLOT, u8::from(slot.side == Side::Sell)][..],
        &slot.generation.to_le_bytes(),
        &slot.price.to_le_bytes(),
        &slot.remaining.to_le_bytes(),
        &slot.owner.to_le_bytes(),
        &slot.arrival.to_le_bytes(),
        &slot.next.to_le_bytes(),
    ]
    .concat()
}

/// A book that is being read. Lists and quantities of prices follow from the orders.
#[derive(Debug, Default)]
pub(crate) struct BookReader(Option<Book>);

impl BookReader {
    /// Takes an item; none if it is not one of a book, or not the next one.
    pub(crate) fn item(&mut self, item: &[u8]) -> Option<()> {
        match item.split_first()? {
            (&BOOK, rest) if self.0.is_none() => {
                let capacity = u32_at(rest, 0).filter(|capacity| *capacity < NONE)?;
                // Slots are added as they come: the capacity may be damaged.
                let book = self.0.insert(Book::new(0));
                book.capacity = capacity as usize;
                book.free = u32_at(rest, 4)?;
                book.arrivals = u64_at(rest, 8)?;
            }
            (&SLOT, rest) => {
                let book = self.0.as_mut()?;
                let slot = Slot {
                    side: match rest.first()? {
                        0 => Side::Buy,
                        1 => Side::Sell,
                        _ => return None,
                    },
                    generation: u32_at(rest, 1)?,
                    price: u32_at(rest, 5).filter(|price| (1..PRICES).contains(price))?,
                    remaining: u32_at(rest, 9)?,
                    owner: u64_at(rest, 13)?.cast_signed(),
                    arrival: u64_at(rest, 21)?,
                    previous: NONE,
                    next: u32_at(rest, 29)?,
                };
                book.slots.push(slot);
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the book; or why the slots are none.
    pub(crate) fn finish(self, capacity: u32) -> Result<Book, &'static str> {
        let mut book = self.0.ok_or("it has no book")?;
        if book.capacity != capacity as usize || book.slots.len() > book.capacity {
            return Err("the book has another capacity than this program");
        }
        let mut orders: Vec<u32> = (0..book.slots.len() as u32)
            .filter(|index| book.slots[*index as usize].remaining > 0)
            .collect();
        // Each free slot is in the list of free ones once: one that comes twice makes it longer than there are.
        let free_count = book.slots.len() - orders.len();
        let (mut free, mut found) = (book.free, 0);
        while free != NONE {
            let slot = book.slots.get(free as usize);
            let slot = slot.filter(|slot| slot.remaining == 0 && found < free_count);
            free = slot.ok_or("the list of free slots is broken")?.next;
            found += 1;
        }
        if found != free_count {
            return Err("the list of free slots is broken");
        }
        let arrival = |index: &u32| book.slots[*index as usize].arrival;
        orders.sort_unstable_by_key(arrival);
        let is_ordered = orders.is_sorted_by(|one, next| arrival(one) < arrival(next));
        let last = orders.last().map_or(0, arrival);
        if !is_ordered || last > book.arrivals {
            return Err("orders have the same time");
        }
        for index in orders {
            book.slots[index as usize].next = NONE;
            book.append(index);
        }
        let best = book.best(Side::Buy).zip(book.best(Side::Sell));
        if best.is_some_and(|(bid, ask)| bid.0 >= ask.0) {
            return Err("the best bid is not below the best ask");
        }
        let mut slots = Vec::with_capacity(book.capacity);
        slots.append(&mut book.slots);
        book.slots = slots;
        Ok(book)
    }
}
