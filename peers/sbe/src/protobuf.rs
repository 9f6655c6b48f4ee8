// SPDX-License-Identifier: Apache-2.0
//! Messages that say the same in Protocol Buffers, by prost.

use prost::Message;

use crate::{LEVELS, NOTE, PARTIES, VENUE, bytes, sum};

#[derive(Clone, PartialEq, Message)]
pub struct Account {
    #[prost(fixed32, tag = "1")]
    firm: u32,
    #[prost(uint32, tag = "2")]
    desk: u32,
    #[prost(fixed32, tag = "3")]
    trader: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Order {
    #[prost(fixed64, tag = "1")]
    order_id: u64,
    #[prost(fixed64, tag = "2")]
    client_id: u64,
    #[prost(fixed64, tag = "3")]
    time: u64,
    #[prost(sfixed64, tag = "4")]
    price: i64,
    #[prost(sfixed64, optional, tag = "5")]
    stop: Option<i64>,
    #[prost(fixed32, tag = "6")]
    quantity: u32,
    #[prost(fixed32, tag = "7")]
    shown: u32,
    #[prost(string, tag = "8")]
    symbol: String,
    #[prost(uint32, tag = "9")]
    side: u32,
    #[prost(uint32, tag = "10")]
    flags: u32,
    #[prost(message, optional, tag = "11")]
    account: Option<Account>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Level {
    #[prost(sfixed64, tag = "1")]
    price: i64,
    #[prost(fixed32, tag = "2")]
    quantity: u32,
    #[prost(uint32, tag = "3")]
    orders: u32,
    #[prost(uint32, tag = "4")]
    side: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Book {
    #[prost(fixed64, tag = "1")]
    time: u64,
    #[prost(fixed32, tag = "2")]
    sequence: u32,
    #[prost(string, tag = "3")]
    symbol: String,
    #[prost(message, repeated, tag = "10")]
    levels: Vec<Level>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fill {
    #[prost(sfixed64, tag = "1")]
    price: i64,
    #[prost(fixed32, tag = "2")]
    quantity: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Party {
    #[prost(uint32, tag = "1")]
    role: u32,
    #[prost(message, repeated, tag = "2")]
    fills: Vec<Fill>,
    #[prost(string, tag = "3")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Report {
    #[prost(fixed64, tag = "1")]
    time: u64,
    #[prost(message, repeated, tag = "2")]
    parties: Vec<Party>,
    #[prost(string, tag = "3")]
    venue: String,
    #[prost(string, tag = "4")]
    note: String,
}

fn written(message: &impl Message, mut buffer: &mut [u8]) -> usize {
    let before = buffer.len();
    message.encode(&mut buffer).expect("room");
    before - buffer.len()
}

pub fn order(buffer: &mut [u8], seed: u64) -> usize {
    let order = Order {
        order_id: seed,
        client_id: seed + 1,
        time: seed + 2,
        price: seed as i64 + 3,
        stop: Some(seed as i64 + 4),
        quantity: 100,
        shown: 10,
        symbol: "ABCDEFGH".to_owned(),
        side: 1,
        flags: 5,
        account: Some(Account {
            firm: 7,
            desk: 8,
            trader: 9,
        }),
    };
    written(&order, buffer)
}

pub fn read_order(from: &[u8]) -> u64 {
    let order = Order::decode(from).expect("an order");
    let account = order.account.unwrap_or_default();
    sum([
        order.order_id,
        order.client_id,
        order.time,
        order.price as u64,
        order.stop.unwrap_or_default() as u64,
        order.quantity.into(),
        order.shown.into(),
        bytes(order.symbol.as_bytes()),
        u64::from(order.side == 1),
        u64::from(order.flags & 4 != 0),
        account.firm.into(),
        account.desk.into(),
        account.trader.into(),
    ])
}

pub fn book(buffer: &mut [u8], seed: u64) -> usize {
    let levels = (0..LEVELS).map(|level| Level {
        price: (seed + level) as i64,
        quantity: level as u32,
        orders: 3,
        side: 2,
    });
    let book = Book {
        time: seed,
        sequence: 5,
        symbol: "ABCDEFGH".to_owned(),
        levels: levels.collect(),
    };
    written(&book, buffer)
}

pub fn read_book(from: &[u8]) -> u64 {
    let book = Book::decode(from).expect("a book");
    let head = [
        book.time,
        book.sequence.into(),
        bytes(book.symbol.as_bytes()),
    ];
    let levels = book.levels.iter().map(|level| {
        sum([
            level.price as u64,
            level.quantity.into(),
            level.orders.into(),
            u64::from(level.side == 2),
        ])
    });
    sum(head.into_iter().chain(levels))
}

pub fn report(buffer: &mut [u8], seed: u64) -> usize {
    let fill = |fill| Fill {
        price: (seed + fill) as i64,
        quantity: fill as u32,
    };
    let party = |(name, count): (&str, u64)| Party {
        role: 4,
        fills: (0..count).map(fill).collect(),
        name: name.to_owned(),
    };
    let report = Report {
        time: seed,
        parties: PARTIES.into_iter().map(party).collect(),
        venue: VENUE.to_owned(),
        note: NOTE.to_owned(),
    };
    written(&report, buffer)
}

pub fn read_report(from: &[u8]) -> u64 {
    let report = Report::decode(from).expect("a report");
    let parties = report.parties.iter().map(|party| {
        let fills = party
            .fills
            .iter()
            .map(|fill| sum([fill.price as u64, fill.quantity.into()]));
        sum([party.role.into(), bytes(party.name.as_bytes()), sum(fills)])
    });
    let texts = [
        bytes(report.venue.as_bytes()),
        bytes(report.note.as_bytes()),
    ];
    sum([report.time, sum(parties), sum(texts)])
}
