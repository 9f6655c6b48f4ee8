// SPDX-License-Identifier: Apache-2.0
//! Our codecs.

use taran_sbe::runtime::{DecodeError, EncodeError};

use crate::bench::book::{BookDecoder, BookEncoder};
use crate::bench::order::{OrderDecoder, OrderEncoder};
use crate::bench::report::{ReportDecoder, ReportEncoder};
use crate::bench::types::{Flags, Side};
use crate::{LEVELS, NOTE, PARTIES, VENUE, bytes, sum};

pub fn order(buffer: &mut [u8], seed: u64) -> usize {
    try_order(buffer, seed).expect("room")
}

fn try_order(buffer: &mut [u8], seed: u64) -> Result<usize, EncodeError> {
    let mut order = OrderEncoder::encode(buffer)?;
    order
        .order_id(seed)
        .client_id(seed + 1)
        .time(seed + 2)
        .price(seed as i64 + 3)
        .stop(Some(seed as i64 + 4))
        .quantity(100)
        .shown(10)
        .side(Side::Buy)
        .flags(Flags::HIDDEN | Flags::REDUCE_ONLY)
        .symbol("ABCDEFGH")?;
    order.account().firm(7).desk(8).trader(9);
    Ok(order.finish())
}

pub fn read_order(from: &[u8]) -> u64 {
    let order = OrderDecoder::decode(from).expect("an order");
    let account = order.account();
    sum([
        order.order_id(),
        order.client_id(),
        order.time(),
        order.price() as u64,
        order.stop().unwrap_or_default() as u64,
        order.quantity().into(),
        order.shown().into(),
        bytes(order.symbol().field()),
        u64::from(order.side() == Side::Buy),
        u64::from(order.flags().contains(Flags::REDUCE_ONLY)),
        account.firm().into(),
        account.desk().into(),
        account.trader().into(),
    ])
}

pub fn book(buffer: &mut [u8], seed: u64) -> usize {
    try_book(buffer, seed).expect("room")
}

fn try_book(buffer: &mut [u8], seed: u64) -> Result<usize, EncodeError> {
    let mut book = BookEncoder::encode(buffer)?;
    book.time(seed).sequence(5).symbol("ABCDEFGH")?;
    let mut levels = book.levels()?;
    for level in 0..LEVELS {
        levels
            .entry()?
            .price((seed + level) as i64)
            .quantity(level as u32)
            .orders(3)
            .side(Side::Sell);
    }
    Ok(levels.done().finish())
}

pub fn read_book(from: &[u8]) -> u64 {
    try_read_book(from).expect("a book")
}

fn try_read_book(from: &[u8]) -> Result<u64, DecodeError> {
    let book = BookDecoder::decode(from)?;
    let head = sum([
        book.time(),
        book.sequence().into(),
        bytes(book.symbol().field()),
    ]);
    let (levels, _) = book.levels()?;
    let levels = levels.map(|level| {
        sum([
            level.price() as u64,
            level.quantity().into(),
            level.orders().into(),
            u64::from(level.side() == Side::Sell),
        ])
    });
    Ok(head.wrapping_add(sum(levels)))
}

pub fn report(buffer: &mut [u8], seed: u64) -> usize {
    try_report(buffer, seed).expect("room")
}

fn try_report(buffer: &mut [u8], seed: u64) -> Result<usize, EncodeError> {
    let mut report = ReportEncoder::encode(buffer)?;
    report.time(seed);
    let mut parties = report.parties()?;
    for (name, count) in PARTIES {
        let mut party = parties.entry()?;
        party.role(4);
        let mut fills = party.fills()?;
        for fill in 0..count {
            fills
                .entry()?
                .price((seed + fill) as i64)
                .quantity(fill as u32);
        }
        parties = fills.done().name(name)?.done();
    }
    Ok(parties.done().venue(VENUE)?.note(NOTE)?.finish())
}

pub fn read_report(from: &[u8]) -> u64 {
    try_read_report(from).expect("a report")
}

/// The same, with an iterator over the entries that have something behind them themselves.
pub fn iterate_report(from: &[u8]) -> u64 {
    try_iterate_report(from).expect("a report")
}

fn try_iterate_report(from: &[u8]) -> Result<u64, DecodeError> {
    let report = ReportDecoder::decode(from)?;
    let mut total = report.time();
    let (parties, report) = report.parties()?;
    for party in parties {
        total = total.wrapping_add(party.role().into());
        let (fills, party) = party.fills()?;
        for fill in fills {
            total = sum([total, fill.price() as u64, fill.quantity().into()]);
        }
        let (name, _) = party.name()?;
        total = total.wrapping_add(bytes(name.as_bytes()));
    }
    let (venue, report) = report.venue()?;
    let (note, _) = report.note()?;
    Ok(sum([
        total,
        bytes(venue.as_bytes()),
        bytes(note.as_bytes()),
    ]))
}

fn try_read_report(from: &[u8]) -> Result<u64, DecodeError> {
    let report = ReportDecoder::decode(from)?;
    let mut total = report.time();
    let report = report.each_parties(|party| {
        total = total.wrapping_add(party.role().into());
        let (fills, party) = party.fills()?;
        for fill in fills {
            total = sum([total, fill.price() as u64, fill.quantity().into()]);
        }
        let (name, party) = party.name()?;
        total = total.wrapping_add(bytes(name.as_bytes()));
        Ok::<_, DecodeError>(party)
    })?;
    let (venue, report) = report.venue()?;
    let (note, _) = report.note()?;
    Ok(sum([
        total,
        bytes(venue.as_bytes()),
        bytes(note.as_bytes()),
    ]))
}
