// SPDX-License-Identifier: Apache-2.0
//! Interoperability of prices: big-endian, with a custom header, and with blocks longer than their fields. A later
//! version adds fields in the unused part of the blocks, after them, and in groups nested three deep.

use taran_sbe_codecs::{ticks_v5, ticks_v6};

use super::official::class_path;
use super::{read_by_theirs, theirs};

pub(super) const QUOTES: [&str; 2] = ["quote_v5", "quote_v6"];
pub(super) const BOOKS: [&str; 2] = ["book_v5", "book_v6"];

/// Checks that each version of the official decoders reads each version of our messages; `fields` returns the expected
/// output by reader and writer.
fn read_by_official(messages: [&str; 2], fields: fn(&str, &str) -> String) {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in messages {
        for reader in messages {
            let read = read_by_theirs(class_path, reader, writer);
            let (head, read) = read.trim_end().split_once("):").unwrap();
            let magic = if writer.starts_with("quote") {
                "48879"
            } else {
                "61453"
            };
            assert!(head.starts_with(&format!("magic={magic}|[")), "{head}");
            let version = |name: &str| name.split_once('_').unwrap().1.to_owned();
            let expected = fields(&version(reader), &version(writer));
            assert_eq!(read, expected, "{reader} reads {writer}");
        }
    }
}

/// Checks that each version of our decoders reads each version of the official messages; `shown` returns the expected
/// output by reader and writer.
fn read_by_ours(messages: [&str; 2], shown: fn(&str, &str) -> String) {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in messages {
        let bytes = theirs(class_path, writer);
        let old = ticks_v5::Message::decode(&bytes).unwrap().to_string();
        let new = ticks_v6::Message::decode(&bytes).unwrap().to_string();
        let (_, version) = writer.split_once('_').unwrap();
        assert_eq!(old, shown("v5", version), "v5 reads {writer}");
        assert_eq!(new, shown("v6", version), "v6 reads {writer}");
    }
}

/// Selects the expected text: of a reader of version 5, of a reader of version 6 with an old message, or with a new
/// one.
fn one_of(reader: &str, writer: &str, [old, absent, new]: [&str; 3]) -> String {
    let which = match (reader, writer) {
        ("v5", _) => old,
        (_, "v5") => absent,
        _ => new,
    };
    which.to_owned()
}

#[test]
fn official_decoders_read_our_quotes_across_versions() {
    read_by_official(QUOTES, |reader, writer| {
        let added = match (reader, writer) {
            ("v5", _) => ["", "", "", "", ""],
            (_, "v5") => [
                "|venue=65535|lots=[NaN,NaN]|nature=Ask",
                "|orders=-1.5",
                "|orders=-1.5",
                "|weight=NaN",
                "|memo=''",
            ],
            _ => [
                "|venue=2571|lots=[0.5,1.0E9]|nature=Ask",
                "|orders=2.5",
                "|orders=-1.5",
                "|weight=0.75",
                "|memo='späte'",
            ],
        };
        let [fields, first, second, leg, last] = added;
        format!(
            "time=72623859790382856|price=9223372036854775807|depth=[1.0,-2.0]|side=Unknown|marks={{last,open}}|gap=-1.5{fields}\
             |levels=[(price=1|size=7{first}|tag=1 bytes of raw data),(price=-1|size=7{second}|tag=2 bytes of raw data)]\
             |legs=[(ratio=-3{leg})]|raw=3 bytes of raw data{last}"
        )
    });
}

#[test]
fn our_decoders_read_official_quotes_across_versions() {
    read_by_ours(QUOTES, |reader, writer| {
        let added = match (reader, writer) {
            ("v5", _) => ["", "", "", "", ""],
            (_, "v5") => [
                ", venue: None, lots: None, nature: Ask",
                ", orders: None",
                ", orders: None",
                ", weight: None",
                ", memo: None",
            ],
            _ => [
                ", venue: Some(2571), lots: Some([0.5, 1000000000.0]), nature: Ask",
                ", orders: Some(2.5)",
                ", orders: None",
                ", weight: Some(0.75)",
                ", memo: Some(\"späte\")",
            ],
        };
        let [fields, first, second, leg, last] = added;
        format!(
            "Quote {{ time: 72623859790382856, price: None, depth: [1.0, -2.0], side: Unknown_, marks: {{last, open}}, gap: None{fields}, \
             levels: [levels {{ price: Some(1), size: 7{first}, tag: [97] }}, levels {{ price: Some(-1), size: 7{second}, tag: [98, 99] }}], \
             legs: [legs {{ ratio: -3{leg} }}], raw: [9, 9, 9]{last} }}"
        )
    });
}

#[test]
fn official_decoders_read_our_books_across_versions() {
    read_by_official(BOOKS, |reader, writer| {
        one_of(
            reader,
            writer,
            [
                "time=7|venues=[\
                 (code=1|sides=[\
                 (side=Bid|orders=[(number=11|price=100|owner='Ada'),(number=12|price=9223372036854775807|owner='')]|note='bids'),\
                 (side=Ask|orders=[(number=13|price=101|owner='Grace')]|note='')]|name='Zürich'),\
                 (code=2|sides=[(side=Ask|orders=[]|note='empty')]|name=''),\
                 (code=3|sides=[(side=Bid|orders=[]|note=''),\
                 (side=Ask|orders=[(number=14|price=-1|owner='Æ')]|note='asks'),\
                 (side=Bid|orders=[(number=15|price=0|owner='b'),(number=16|price=1|owner='c'),(number=17|price=2|owner='d')]\
                 |note='more')]|name='Oslo')]|source=2 bytes of raw data",
                "time=7|sequence=4294967295|venues=[\
                 (code=1|fee=-1.5|sides=[\
                 (side=Bid|total=4294967295|orders=[(number=11|price=100|marks=null|owner='Ada'),\
                 (number=12|price=9223372036854775807|marks=null|owner='')]|note='bids'),\
                 (side=Ask|total=4294967295|orders=[(number=13|price=101|marks=null|owner='Grace')]|note='')]|name='Zürich'),\
                 (code=2|fee=-1.5|sides=[(side=Ask|total=4294967295|orders=[]|note='empty')]|name=''),\
                 (code=3|fee=-1.5|sides=[(side=Bid|total=4294967295|orders=[]|note=''),\
                 (side=Ask|total=4294967295|orders=[(number=14|price=-1|marks=null|owner='Æ')]|note='asks'),\
                 (side=Bid|total=4294967295|orders=[(number=15|price=0|marks=null|owner='b'),\
                 (number=16|price=1|marks=null|owner='c'),(number=17|price=2|marks=null|owner='d')]\
                 |note='more')]|name='Oslo')]|source=2 bytes of raw data|digest=''",
                "time=7|sequence=16909060|venues=[\
                 (code=1|fee=0.25|sides=[\
                 (side=Bid|total=2|orders=[(number=11|price=100|marks={}|owner='Ada'),\
                 (number=12|price=9223372036854775807|marks={last}|owner='')]|note='bids'),\
                 (side=Ask|total=1|orders=[(number=13|price=101|marks={}|owner='Grace')]|note='')]|name='Zürich'),\
                 (code=2|fee=-1.5|sides=[(side=Ask|total=0|orders=[]|note='empty')]|name=''),\
                 (code=3|fee=-1.5|sides=[(side=Bid|total=0|orders=[]|note=''),\
                 (side=Ask|total=1|orders=[(number=14|price=-1|marks={last}|owner='Æ')]|note='asks'),\
                 (side=Bid|total=3|orders=[(number=15|price=0|marks={}|owner='b'),\
                 (number=16|price=1|marks={last}|owner='c'),(number=17|price=2|marks={}|owner='d')]\
                 |note='more')]|name='Oslo')]|source=2 bytes of raw data|digest='süß'",
            ],
        )
    });
}

#[test]
fn our_decoders_read_official_books_across_versions() {
    read_by_ours(BOOKS, |reader, writer| {
        one_of(
            reader,
            writer,
            [
                "Book { time: 7, venues: [\
                 venues { code: 1, sides: [\
                 sides { side: Bid, orders: [orders { number: 11, price: Some(100), owner: \"Ada\" }, \
                 orders { number: 12, price: None, owner: \"\" }], note: \"bids\" }, \
                 sides { side: Ask, orders: [orders { number: 13, price: Some(101), owner: \"Grace\" }], note: \"\" }], name: \"Zürich\" }, \
                 venues { code: 2, sides: [sides { side: Ask, orders: [], note: \"empty\" }], name: \"\" }, \
                 venues { code: 3, sides: [sides { side: Bid, orders: [], note: \"\" }, \
                 sides { side: Ask, orders: [orders { number: 14, price: Some(-1), owner: \"Æ\" }], note: \"asks\" }, \
                 sides { side: Bid, orders: [orders { number: 15, price: Some(0), owner: \"b\" }, \
                 orders { number: 16, price: Some(1), owner: \"c\" }, orders { number: 17, price: Some(2), owner: \"d\" }], \
                 note: \"more\" }], name: \"Oslo\" }], source: [1, 2] }",
                "Book { time: 7, sequence: None, scale: Scale { exponent: -4 }, venues: [\
                 venues { code: 1, fee: None, kind: 7, sides: [\
                 sides { side: Bid, total: None, orders: [orders { number: 11, price: Some(100), marks: None, owner: \"Ada\" }, \
                 orders { number: 12, price: None, marks: None, owner: \"\" }], note: \"bids\" }, \
                 sides { side: Ask, total: None, orders: [orders { number: 13, price: Some(101), marks: None, owner: \"Grace\" }], \
                 note: \"\" }], name: \"Zürich\" }, \
                 venues { code: 2, fee: None, kind: 7, sides: [sides { side: Ask, total: None, orders: [], note: \"empty\" }], name: \"\" }, \
                 venues { code: 3, fee: None, kind: 7, sides: [sides { side: Bid, total: None, orders: [], note: \"\" }, \
                 sides { side: Ask, total: None, orders: [orders { number: 14, price: Some(-1), marks: None, owner: \"Æ\" }], \
                 note: \"asks\" }, \
                 sides { side: Bid, total: None, orders: [orders { number: 15, price: Some(0), marks: None, owner: \"b\" }, \
                 orders { number: 16, price: Some(1), marks: None, owner: \"c\" }, \
                 orders { number: 17, price: Some(2), marks: None, owner: \"d\" }], \
                 note: \"more\" }], name: \"Oslo\" }], source: [1, 2], digest: None }",
                "Book { time: 7, sequence: Some(16909060), scale: Scale { exponent: -4 }, venues: [\
                 venues { code: 1, fee: Some(0.25), kind: 7, sides: [\
                 sides { side: Bid, total: Some(2), orders: [orders { number: 11, price: Some(100), marks: Some({}), owner: \"Ada\" }, \
                 orders { number: 12, price: None, marks: Some({last}), owner: \"\" }], note: \"bids\" }, \
                 sides { side: Ask, total: Some(1), orders: [orders { number: 13, price: Some(101), marks: Some({}), owner: \"Grace\" }], \
                 note: \"\" }], name: \"Zürich\" }, \
                 venues { code: 2, fee: None, kind: 7, sides: [sides { side: Ask, total: Some(0), orders: [], note: \"empty\" }], name: \"\" }, \
                 venues { code: 3, fee: None, kind: 7, sides: [sides { side: Bid, total: Some(0), orders: [], note: \"\" }, \
                 sides { side: Ask, total: Some(1), orders: [orders { number: 14, price: Some(-1), marks: Some({last}), owner: \"Æ\" }], \
                 note: \"asks\" }, \
                 sides { side: Bid, total: Some(3), orders: [orders { number: 15, price: Some(0), marks: Some({}), owner: \"b\" }, \
                 orders { number: 16, price: Some(1), marks: Some({last}), owner: \"c\" }, \
                 orders { number: 17, price: Some(2), marks: Some({}), owner: \"d\" }], \
                 note: \"more\" }], name: \"Oslo\" }], source: [1, 2], digest: Some(\"süß\") }",
            ],
        )
    });
}
