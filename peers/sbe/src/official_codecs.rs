// SPDX-License-Identifier: Apache-2.0
//! The official tool's codecs.

use official::book_codec::encoder::LevelsEncoder;
use official::book_codec::{BookDecoder, BookEncoder};
use official::flags::Flags;
use official::message_header_codec::{self, MessageHeaderDecoder};
use official::order_codec::{OrderDecoder, OrderEncoder};
use official::report_codec::encoder::{FillsEncoder, PartiesEncoder};
use official::report_codec::{ReportDecoder, ReportEncoder};
use official::side::Side;
use official::{ReadBuf, SbeResult, WriteBuf};

use crate::{LEVELS, NOTE, PARTIES, VENUE, bytes, sum};

const HEADER: usize = message_header_codec::ENCODED_LENGTH;

pub fn order(buffer: &mut [u8], seed: u64) -> usize {
    try_order(buffer, seed).expect("room")
}

fn try_order(buffer: &mut [u8], seed: u64) -> SbeResult<usize> {
    let order = OrderEncoder::default().wrap(WriteBuf::new(buffer), HEADER);
    let mut order = order.header(0).parent()?;
    let mut flags = Flags::default();
    flags.set_hidden(true).set_reduce_only(true);
    order
        .order_id(seed)
        .client_id(seed + 1)
        .time(seed + 2)
        .price(seed as i64 + 3)
        .stop(seed as i64 + 4)
        .quantity(100)
        .shown(10)
        .symbol(b"ABCDEFGH")
        .side(Side::Buy)
        .flags(flags);
    let mut account = order.account_encoder();
    account.firm(7);
    account.desk(8);
    account.trader(9);
    let order = account.parent()?;
    Ok(HEADER + order.encoded_length())
}

pub fn read_order(from: &[u8]) -> u64 {
    try_read_order(from).expect("an order")
}

fn try_read_order(from: &[u8]) -> SbeResult<u64> {
    let header = MessageHeaderDecoder::default().wrap(ReadBuf::new(from), 0);
    let order = OrderDecoder::default().header(header, 0);
    let head = sum([
        order.order_id(),
        order.client_id(),
        order.time(),
        order.price() as u64,
        order.stop().unwrap_or_default() as u64,
        order.quantity().into(),
        order.shown().into(),
        bytes(&order.symbol()),
        u64::from(order.side() == Side::Buy),
        u64::from(order.flags().get_reduce_only()),
    ]);
    let account = order.account_decoder();
    Ok(sum([
        head,
        account.firm().into(),
        account.desk().into(),
        account.trader().into(),
    ]))
}

pub fn book(buffer: &mut [u8], seed: u64) -> usize {
    try_book(buffer, seed).expect("room")
}

fn try_book(buffer: &mut [u8], seed: u64) -> SbeResult<usize> {
    let book = BookEncoder::default().wrap(WriteBuf::new(buffer), HEADER);
    let mut book = book.header(0).parent()?;
    book.time(seed).sequence(5).symbol(b"ABCDEFGH");
    let mut levels = book.levels_encoder(LEVELS as u16, LevelsEncoder::default());
    for level in 0..LEVELS {
        levels.advance()?;
        levels
            .price((seed + level) as i64)
            .quantity(level as u32)
            .orders(3)
            .side(Side::Sell);
    }
    let book = levels.parent()?;
    Ok(HEADER + book.encoded_length())
}

pub fn read_book(from: &[u8]) -> u64 {
    try_read_book(from).expect("a book")
}

fn try_read_book(from: &[u8]) -> SbeResult<u64> {
    let header = MessageHeaderDecoder::default().wrap(ReadBuf::new(from), 0);
    let book = BookDecoder::default().header(header, 0);
    let mut total = sum([book.time(), book.sequence().into(), bytes(&book.symbol())]);
    let mut levels = book.levels_decoder();
    while levels.advance()?.is_some() {
        total = sum([
            total,
            levels.price() as u64,
            levels.quantity().into(),
            levels.orders().into(),
            u64::from(levels.side() == Side::Sell),
        ]);
    }
    Ok(total)
}

pub fn report(buffer: &mut [u8], seed: u64) -> usize {
    try_report(buffer, seed).expect("room")
}

fn try_report(buffer: &mut [u8], seed: u64) -> SbeResult<usize> {
    let report = ReportEncoder::default().wrap(WriteBuf::new(buffer), HEADER);
    let mut report = report.header(0).parent()?;
    report.time(seed);
    let mut parties = report.parties_encoder(PARTIES.len() as u16, PartiesEncoder::default());
    for (name, count) in PARTIES {
        parties.advance()?;
        parties.role(4);
        let mut fills = parties.fills_encoder(count as u16, FillsEncoder::default());
        for fill in 0..count {
            fills.advance()?;
            fills.price((seed + fill) as i64).quantity(fill as u32);
        }
        parties = fills.parent()?;
        parties.name(name);
    }
    let mut report = parties.parent()?;
    report.venue(VENUE).note(NOTE);
    Ok(HEADER + report.encoded_length())
}

pub fn read_report(from: &[u8]) -> u64 {
    try_read_report(from).expect("a report")
}

fn try_read_report(from: &[u8]) -> SbeResult<u64> {
    let header = MessageHeaderDecoder::default().wrap(ReadBuf::new(from), 0);
    let report = ReportDecoder::default().header(header, 0);
    let mut total = report.time();
    let mut parties = report.parties_decoder();
    while parties.advance()?.is_some() {
        total = total.wrapping_add(parties.role().into());
        let mut fills = parties.fills_decoder();
        while fills.advance()?.is_some() {
            total = sum([total, fills.price() as u64, fills.quantity().into()]);
        }
        parties = fills.parent()?;
        let name = parties.name_decoder();
        total = total.wrapping_add(bytes(&from[name.0..name.0 + name.1]));
    }
    let mut report = parties.parent()?;
    let venue = report.venue_decoder();
    let note = report.note_decoder();
    Ok(sum([
        total,
        bytes(&from[venue.0..venue.0 + venue.1]),
        bytes(&from[note.0..note.0 + note.1]),
    ]))
}
