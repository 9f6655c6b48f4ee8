// SPDX-License-Identifier: Apache-2.0
//! An order book with price-time priority.
//!
//! Orders are in a slab that is allocated once, and in one list per price. A bitmap of the prices that have orders finds the next
//! best one. Each operation takes constant time, plus constant time per fill; none allocates. What the book does, also the ids that
//! it gives, depends only on the calls before: copies that get the same calls are equal.
//!
//! Contract: [`limit`](Book::limit), [`market`](Book::market) and [`cancel`](Book::cancel) are the input; fills are the output,
//! passed to the caller in the order in which they happen, before the call returns.

mod ladder;
mod snapshot;
#[cfg(test)]
mod tests;

use self::ladder::Ladder;
pub(crate) use self::snapshot::BookReader;

/// Number of prices: orders have prices from 1 to one less, in ticks.
pub(crate) const PRICES: u32 = 1 << 16;

/// End of a list of orders.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Buy,
    Sell,
}

impl Side {
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}

/// Id of an order: the number of times that its slot was used before, and its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OrderId(pub(crate) u64);

impl OrderId {
    const fn new(generation: u32, slot: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    const fn slot(self) -> usize {
        // The lower half.
        self.0 as u32 as usize
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A part of an order that rests, the maker, meets an incoming one, the taker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) maker: OrderId,
    pub(crate) maker_owner: i64,
    pub(crate) maker_remaining: u32,
    pub(crate) taker_remaining: u32,
    pub(crate) price: u32,
    pub(crate) quantity: u32,
}

/// Result of a limit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    Filled,
    Rests { id: OrderId, remaining: u32 },
}

/// Reason why the book does not take an order, or does not cancel one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The price is 0, or too high.
    Price,
    /// The quantity is 0.
    Quantity,
    /// The book has as many orders as it can have: it takes market orders and cancellations.
    Full,
    /// There is no such order of this owner.
    UnknownOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    generation: u32,
    side: Side,
    price: u32,
    /// 0 if the slot is free.
    remaining: u32,
    owner: i64,
    /// Orders of a price have ascending numbers.
    arrival: u64,
    previous: u32,
    /// Next order of the price, or next free slot.
    next: u32,
}

/// The book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Book {
    /// Slots that were used so far; its capacity is reserved at the start.
    slots: Vec<Slot>,
    capacity: usize,
    free: u32,
    arrivals: u64,
    bids: Ladder,
    asks: Ladder,
}

impl Book {
    /// Creates a book of up to this number of orders.
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self {
            slots: Vec::with_capacity(capacity),
            capacity,
            free: NONE,
            arrivals: 0,
            bids: Ladder::new(),
            asks: Ladder::new(),
        }
    }

    /// Trades with orders at this price or a better one, best first, and lets the rest wait in the book.
    pub(crate) fn limit(
        &mut self,
        owner: i64,
        side: Side,
        price: u32,
        quantity: u32,
        on_fill: impl FnMut(&Fill),
    ) -> Result<Placed, Rejection> {
        if !(1..PRICES).contains(&price) {
            return Err(Rejection::Price);
        }
        if quantity == 0 {
            return Err(Rejection::Quantity);
        }
        if self.free == NONE && self.slots.len() == self.capacity {
            return Err(Rejection::Full);
        }
        let remaining = self.take(side, Some(price), quantity, on_fill);
        if remaining == 0 {
            return Ok(Placed::Filled);
        }
        let id = self.rest(owner, side, price, remaining);
        Ok(Placed::Rests { id, remaining })
    }

    /// Trades with the best orders. Returns the quantity for which there were none.
    pub(crate) fn market(
        &mut self,
        side: Side,
        quantity: u32,
        on_fill: impl FnMut(&Fill),
    ) -> Result<u32, Rejection> {
        if quantity == 0 {
            return Err(Rejection::Quantity);
        }
        Ok(self.take(side, None, quantity, on_fill))
    }

    /// Removes an order. Returns the quantity that it had left.
    pub(crate) fn cancel(&mut self, owner: i64, id: OrderId) -> Result<u32, Rejection> {
        let slot = self.slots.get(id.slot());
        let is_there = slot.is_some_and(|slot| {
            slot.remaining > 0 && slot.generation == id.generation() && slot.owner == owner
        });
        if !is_there {
            return Err(Rejection::UnknownOrder);
        }
        let remaining = self.slots[id.slot()].remaining;
        self.remove(id.slot());
        Ok(remaining)
    }

    /// Removes all orders of an owner, whose number it returns. Takes time in proportion to the slots of the book.
    pub(crate) fn cancel_all(&mut self, owner: i64) -> usize {
        let mut count = 0;
        for index in 0..self.slots.len() {
            if self.slots[index].remaining > 0 && self.slots[index].owner == owner {
                self.remove(index);
                count += 1;
            }
        }
        count
    }

    /// Returns the best price of a side, and the quantity at this price.
    pub(crate) fn best(&self, side: Side) -> Option<(u32, u64)> {
        let ladder = self.ladder(side);
        let price = ladder.best(side)?;
        Some((price, ladder.level(price).quantity))
    }

    /// Returns the number of orders.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.iter().filter(|slot| slot.remaining > 0).count()
    }

    fn ladder(&self, side: Side) -> &Ladder {
        match side {
            Side::Buy => &self.bids,
            Side::Sell => &self.asks,
        }
    }

    fn ladder_mut(&mut self, side: Side) -> &mut Ladder {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    fn take(
        &mut self,
        side: Side,
        limit: Option<u32>,
        quantity: u32,
        mut on_fill: impl FnMut(&Fill),
    ) -> u32 {
        let makers = side.opposite();
        let mut remaining = quantity;
        while remaining > 0 {
            let Some(price) = self.ladder(makers).best(makers) else {
                break;
            };
            let is_acceptable = match (side, limit) {
                (_, None) => true,
                (Side::Buy, Some(limit)) => price <= limit,
                (Side::Sell, Some(limit)) => price >= limit,
            };
            if !is_acceptable {
                break;
            }
            let index = self.ladder(makers).level(price).head as usize;
            let slot = &mut self.slots[index];
            let quantity = remaining.min(slot.remaining);
            remaining -= quantity;
            slot.remaining -= quantity;
            let fill = Fill {
                maker: OrderId::new(slot.generation, index as u32),
                maker_owner: slot.owner,
                maker_remaining: slot.remaining,
                taker_remaining: remaining,
                price,
                quantity,
            };
            self.ladder_mut(makers).fill(price, quantity);
            if fill.maker_remaining == 0 {
                self.remove(index);
            }
            on_fill(&fill);
        }
        remaining
    }

    fn rest(&mut self, owner: i64, side: Side, price: u32, remaining: u32) -> OrderId {
        self.arrivals += 1;
        let mut order = Slot {
            generation: 0,
            side,
            price,
            remaining,
            owner,
            arrival: self.arrivals,
            previous: NONE,
            next: NONE,
        };
        // The capacity is below `NONE`, as it is a u32 that counts slots.
        let index = if self.free == NONE {
            self.slots.push(order);
            (self.slots.len() - 1) as u32
        } else {
            let index = self.free;
            let free = &mut self.slots[index as usize];
            order.generation = free.generation;
            self.free = free.next;
            *free = order;
            index
        };
        self.append(index);
        OrderId::new(order.generation, index)
    }

    /// Appends an order to the list of its price.
    fn append(&mut self, index: u32) {
        let Slot {
            side,
            price,
            remaining,
            ..
        } = self.slots[index as usize];
        let last = self.ladder_mut(side).append(price, index, remaining);
        self.slots[index as usize].previous = last;
        if let Some(last) = self.slots.get_mut(last as usize) {
            last.next = index;
        }
    }

    /// Takes an order from the list of its price, and frees its slot.
    fn remove(&mut self, index: usize) {
        let Slot {
            side,
            price,
            remaining,
            previous,
            next,
            ..
        } = self.slots[index];
        if let Some(previous) = self.slots.get_mut(previous as usize) {
            previous.next = next;
        }
        if let Some(next) = self.slots.get_mut(next as usize) {
            next.previous = previous;
        }
        self.ladder_mut(side)
            .remove(price, remaining, previous, next);
        let free = self.free;
        let slot = &mut self.slots[index];
        slot.remaining = 0;
        slot.previous = NONE;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = free;
        self.free = index as u32;
    }
}
