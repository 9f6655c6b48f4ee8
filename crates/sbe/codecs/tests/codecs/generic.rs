// SPDX-License-Identifier: Apache-2.0
//! Random messages, written by generated encoders and read by generated decoders and the schema-driven decoder.

use std::path::Path;
use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use taran_sbe::decode::Decoder;
use taran_sbe::model::Schema;
use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::ticks_v5::quote::{QuoteDecoder, QuoteEncoder};
use taran_sbe_codecs::ticks_v5::types::{Marks, Side};

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/ticks_v5.xml");
        taran_sbe::compile_file(&path).unwrap().schema
    })
}

#[derive(Debug, Clone)]
struct Quote {
    time: u64,
    price: Option<i64>,
    depth: [f64; 2],
    side: u16,
    marks: u32,
    gap: Option<f32>,
    levels: Vec<(Option<i64>, u32, Vec<u8>)>,
    legs: Vec<i16>,
    raw: Vec<u8>,
}

fn quote() -> impl Strategy<Value = Quote> {
    let price =
        || prop::option::of(any::<i64>().prop_filter("is null", |price| *price != i64::MAX));
    let number = -1e9..1e9_f64;
    let head = (
        any::<u64>(),
        price(),
        [number.clone(), number],
        0..5_u16,
        any::<u32>(),
    );
    let levels = vec((price(), 0..u32::MAX, vec(any::<u8>(), 0..20)), 0..5);
    let tail = (levels, vec(-32_767_i16.., 1..4), vec(any::<u8>(), 0..50));
    (head, prop::option::of(0.0..1e6_f32), tail).prop_map(|(head, gap, tail)| Quote {
        time: head.0,
        price: head.1,
        depth: head.2,
        side: head.3,
        marks: head.4,
        gap,
        levels: tail.0,
        legs: tail.1,
        raw: tail.2,
    })
}

fn encode(quote: &Quote, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut message = QuoteEncoder::encode(buffer)?;
    message
        .time(quote.time)
        .price(quote.price)
        .depth(&quote.depth)
        .side(Side::from_raw(quote.side))
        .marks(Marks::from_raw(quote.marks))
        .gap(quote.gap);
    let mut levels = message.levels()?;
    for (price, size, tag) in &quote.levels {
        let mut level = levels.entry()?;
        level.price(*price).size(*size);
        levels = level.tag(tag)?.done();
    }
    let mut legs = levels.done().legs()?;
    for ratio in &quote.legs {
        legs.entry()?.ratio(*ratio);
    }
    Ok(legs.done()?.raw(&quote.raw)?.finish())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected(quote: &Quote) -> Value {
    let marks: Vec<_> = (0..32)
        .filter(|bit| quote.marks >> bit & 1 == 1)
        .map(|bit| match bit {
            31 => json!("last"),
            0 => json!("open"),
            bit => json!(bit),
        })
        .collect();
    let levels: Vec<_> = quote
        .levels
        .iter()
        .map(|(price, size, tag)| json!({"price": price, "size": size, "tag": hex(tag)}))
        .collect();
    let legs: Vec<_> = quote
        .legs
        .iter()
        .map(|ratio| json!({"ratio": ratio}))
        .collect();
    json!({
        "time": quote.time,
        "price": quote.price,
        "depth": quote.depth,
        "side": match quote.side {
            1 => json!("Bid"),
            2 => json!("Ask"),
            3 => json!("Unknown"),
            other => json!(other),
        },
        "marks": marks,
        "gap": quote.gap,
        "levels": levels,
        "legs": legs,
        "raw": hex(&quote.raw),
    })
}

/// Sorts the choices of a set.
fn sorted(mut fields: Value) -> Value {
    if let Some(marks) = fields["marks"].as_array_mut() {
        marks.sort_by_key(Value::to_string);
    }
    fields
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn random_messages_round_trip(quote in quote()) {
        let mut buffer = [0xAA; 512];
        let length = encode(&quote, &mut buffer).unwrap();
        let bytes = &buffer[..length];

        let message = QuoteDecoder::decode(bytes).unwrap();
        prop_assert_eq!(message.time(), quote.time);
        prop_assert_eq!(message.price(), quote.price);
        prop_assert_eq!(message.depth(), quote.depth);
        prop_assert_eq!(message.side().raw(), quote.side);
        prop_assert_eq!(message.marks().raw(), quote.marks);
        prop_assert_eq!(message.gap(), quote.gap);
        let (levels, message) = message.levels().unwrap();
        let levels: Vec<_> = levels
            .map(|level| (level.price(), level.size(), level.tag().unwrap().0.to_vec()))
            .collect();
        prop_assert_eq!(&levels, &quote.levels);
        let (legs, message) = message.legs().unwrap();
        prop_assert_eq!(&legs.map(|leg| leg.ratio()).collect::<Vec<_>>(), &quote.legs);
        prop_assert_eq!(message.raw().unwrap().0, &quote.raw);

        let generic = Decoder::new(schema()).message(bytes).unwrap();
        let generic = serde_json::to_value(&generic).unwrap();
        prop_assert_eq!(&generic["length"], &json!(length));
        prop_assert_eq!(sorted(generic["fields"].clone()), sorted(expected(&quote)));
    }
}
