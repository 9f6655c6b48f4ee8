// SPDX-License-Identifier: Apache-2.0
//! Properties of the book, beside a model that is as simple as can be.

use proptest::prelude::*;
use taran_cluster::service::SnapshotWriter;

use super::super::support::chunks::{self, ChunkReader, Format};
use super::*;

const CAPACITY: u32 = 12;

/// A list of orders, in the order in which they came. The best one is searched anew for each fill.
#[derive(Default)]
struct Model(Vec<Resting>);

struct Resting {
    id: OrderId,
    owner: i64,
    side: Side,
    price: u32,
    remaining: u32,
}

/// A fill as the model knows it.
type Trade = (OrderId, i64, u32, u32);

impl Model {
    fn take(&mut self, side: Side, limit: Option<u32>, mut quantity: u32) -> (Vec<Trade>, u32) {
        let mut trades = Vec::new();
        while quantity > 0 {
            let makers = self.0.iter_mut().filter(|order| order.side != side);
            // The first one of the best price.
            let best = match side {
                Side::Buy => makers.min_by_key(|order| order.price),
                Side::Sell => makers.rev().max_by_key(|order| order.price),
            };
            let Some(maker) = best else { break };
            let is_acceptable = limit.is_none_or(|limit| match side {
                Side::Buy => maker.price <= limit,
                Side::Sell => maker.price >= limit,
            });
            if !is_acceptable {
                break;
            }
            let traded = quantity.min(maker.remaining);
            quantity -= traded;
            maker.remaining -= traded;
            trades.push((maker.id, maker.owner, maker.price, traded));
            self.0.retain(|order| order.remaining > 0);
        }
        (trades, quantity)
    }

    fn best(&self, side: Side) -> Option<(u32, u64)> {
        let of_side = || self.0.iter().filter(|order| order.side == side);
        let prices = of_side().map(|order| order.price);
        let price = match side {
            Side::Buy => prices.max(),
            Side::Sell => prices.min(),
        }?;
        let quantities = of_side().filter(|order| order.price == price);
        Some((
            price,
            quantities.map(|order| u64::from(order.remaining)).sum(),
        ))
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Limit(i64, Side, u32, u32),
    Market(Side, u32),
    /// The order with this index among those that rest, by its own or another owner.
    Cancel(usize, bool),
    CancelAll(i64),
    /// The book is written and read again.
    Restart,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    // Few prices, so that orders meet; some at the ends of the words of the bitmaps, some invalid.
    let price = prop_oneof![
        8 => 98_u32..104,
        1 => prop_oneof![Just(0), Just(1), Just(63), Just(64), Just(4_096), Just(65_535), Just(65_536)],
    ];
    let limit = (0_i64..3, side.clone(), price, 0_u32..10)
        .prop_map(|(owner, side, price, quantity)| Operation::Limit(owner, side, price, quantity));
    let operation = prop_oneof![
        12 => limit,
        2 => (side, 0_u32..20).prop_map(|(side, quantity)| Operation::Market(side, quantity)),
        4 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(at, own)| Operation::Cancel(at, own)),
        1 => (0_i64..3).prop_map(Operation::CancelAll),
        1 => Just(Operation::Restart),
    ];
    prop::collection::vec(operation, 0..120)
}

const FORMAT: Format = Format {
    name: b"testbook",
    version: 1,
};

fn frames(book: &Book) -> Vec<Vec<u8>> {
    let mut snapshot = SnapshotWriter::new();
    chunks::write(&mut snapshot, FORMAT, book.item_count(), book.items());
    snapshot.into_frames()
}

fn read(frames: &[Vec<u8>]) -> Result<Book, String> {
    let mut chunks = ChunkReader::open(frames, FORMAT).map_err(|error| error.to_string())?;
    let mut reader = BookReader::default();
    while let Some(item) = chunks.next_item().map_err(|error| error.to_string())? {
        reader.item(item).ok_or("no item of a book")?;
    }
    Ok(reader.finish(CAPACITY)?)
}

fn run(operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let (mut book, mut model) = (Book::new(CAPACITY), Model::default());
    let mut twin = book.clone();
    for operation in operations {
        let mut trades: Vec<Trade> = Vec::new();
        let record = |fill: &Fill| {
            trades.push((fill.maker, fill.maker_owner, fill.price, fill.quantity));
        };
        match operation {
            Operation::Limit(owner, side, price, quantity) => {
                let placed = book.limit(owner, side, price, quantity, record);
                prop_assert_eq!(placed, twin.limit(owner, side, price, quantity, |_| ()));
                let expected = if !(1..PRICES).contains(&price) {
                    Err(Rejection::Price)
                } else if quantity == 0 {
                    Err(Rejection::Quantity)
                } else if model.0.len() == CAPACITY as usize {
                    Err(Rejection::Full)
                } else {
                    Ok(model.take(side, Some(price), quantity))
                };
                match (placed, expected) {
                    (Ok(placed), Ok((expected, remaining))) => {
                        prop_assert_eq!(trades, expected);
                        let id = match placed {
                            Placed::Filled => None,
                            Placed::Rests { id, .. } => Some(id),
                        };
                        prop_assert_eq!(id.is_some(), remaining > 0);
                        model.0.extend(id.map(|id| Resting {
                            id,
                            owner,
                            side,
                            price,
                            remaining,
                        }));
                    }
                    (placed, expected) => prop_assert_eq!(placed.err(), expected.err()),
                }
            }
            Operation::Market(side, quantity) => {
                let unfilled = book.market(side, quantity, record);
                prop_assert_eq!(unfilled, twin.market(side, quantity, |_| ()));
                if quantity == 0 {
                    prop_assert_eq!(unfilled, Err(Rejection::Quantity));
                } else {
                    let (expected, remaining) = model.take(side, None, quantity);
                    prop_assert_eq!((trades, unfilled), (expected, Ok(remaining)));
                }
            }
            Operation::Cancel(at, is_own) => {
                let Some(at) = at.checked_rem(model.0.len()) else {
                    continue;
                };
                let Resting {
                    id,
                    owner,
                    remaining,
                    ..
                } = model.0[at];
                let owner = if is_own { owner } else { owner + 1 };
                let expected = if is_own {
                    Ok(remaining)
                } else {
                    Err(Rejection::UnknownOrder)
                };
                prop_assert_eq!(book.cancel(owner, id), expected);
                prop_assert_eq!(twin.cancel(owner, id), expected);
                if is_own {
                    model.0.remove(at);
                    prop_assert_eq!(book.cancel(owner, id), Err(Rejection::UnknownOrder));
                }
            }
            Operation::CancelAll(owner) => {
                let before = model.0.len();
                model.0.retain(|order| order.owner != owner);
                prop_assert_eq!(book.cancel_all(owner), before - model.0.len());
                twin.cancel_all(owner);
            }
            Operation::Restart => {
                let restored = read(&frames(&book));
                prop_assert_eq!(restored.as_ref(), Ok(&book));
                book = restored.unwrap_or_else(|_| Book::new(CAPACITY));
            }
        }
        for side in [Side::Buy, Side::Sell] {
            prop_assert_eq!(book.best(side), model.best(side));
        }
        prop_assert_eq!(book.len(), model.0.len());
        prop_assert_eq!(
            book.slots.capacity(),
            CAPACITY as usize,
            "it allocates only at the start"
        );
    }
    prop_assert_eq!(&book, &twin, "a book that was restarted gives the same ids");
    Ok(())
}

proptest! {
    #[test]
    fn book_trades_as_the_model_and_its_copies_stay_equal(operations in operations()) {
        run(operations)?;
    }

    #[test]
    fn damaged_snapshot_is_an_error_or_a_whole_book(
        operations in operations(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut book = Book::new(CAPACITY);
        for operation in operations {
            if let Operation::Limit(owner, side, price, quantity) = operation {
                let _ = book.limit(owner, side, price, quantity, |_| ());
            }
        }
        let mut damaged = frames(&book);
        if let Some(chunk) = damaged.get_mut(1) {
            let at = at.index(chunk.len());
            chunk[at] = value;
        }
        if let Ok(mut book) = read(&damaged) {
            let sold = book.market(Side::Sell, u32::MAX, |_| ());
            prop_assert!(sold.is_ok());
            let bought = book.market(Side::Buy, u32::MAX, |_| ());
            prop_assert!(bought.is_ok());
            prop_assert!(read(&frames(&book)).is_ok());
        }
    }
}

#[test]
fn orders_of_a_price_trade_in_the_order_in_which_they_came() {
    let mut book = Book::new(CAPACITY);
    let rest = |book: &mut Book, owner, price, quantity| match book.limit(
        owner,
        Side::Sell,
        price,
        quantity,
        |_| (),
    ) {
        Ok(Placed::Rests { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    let late = rest(&mut book, 1, 102, 5);
    let first = rest(&mut book, 2, 101, 5);
    let second = rest(&mut book, 3, 101, 5);
    let mut fills = Vec::new();
    let placed = book.limit(4, Side::Buy, 101, 12, |fill| fills.push(*fill));
    assert_eq!(
        fills
            .iter()
            .map(|fill| (
                fill.maker,
                fill.quantity,
                fill.maker_remaining,
                fill.taker_remaining
            ))
            .collect::<Vec<_>>(),
        [(first, 5, 0, 7), (second, 5, 0, 2)]
    );
    assert!(matches!(placed, Ok(Placed::Rests { remaining: 2, .. })));
    assert_eq!(book.best(Side::Buy), Some((101, 2)));
    assert_eq!(book.best(Side::Sell), Some((102, 5)));
    assert_eq!(
        book.market(Side::Buy, 9, |fill| assert_eq!(fill.maker, late)),
        Ok(4)
    );
    // A slot that is used again has another id.
    assert_ne!(rest(&mut book, 1, 102, 5), late);
}
