// SPDX-License-Identifier: Apache-2.0
//! Schema names that map to the same Rust name: the first keeps it, the others get numbers.

use taran_sbe::runtime::{DecodeError, EncodeError};
use taran_sbe_codecs::twins::leg::{LegDecoder, LegEncoder};
use taran_sbe_codecs::twins::leg_2;
use taran_sbe_codecs::twins::types::{Flags, Grade, Grade2, PriceUnit, PriceUnit2};
use taran_sbe_codecs::twins::{Message, leg};

fn encode(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut leg = LegEncoder::encode(buffer)?;
    leg.order_id(1)
        .order_id_2(2)
        .type_(3)
        .type_2(4)
        .grade(Grade::A2)
        .other(Grade2::Only)
        .flags(Flags::IS_UP_2)
        .unit(PriceUnit::Euro)
        .each_legs(5);
    leg.price().amount(6).amount_2(7).unit(PriceUnit2::Cent);
    let mut inner: leg::Leg2Encoder<'_> = leg.leg()?;
    inner.entry()?.ratio(8);
    let mut entries: leg::LegEntryEncoder<'_> = inner.done().leg_entry()?;
    entries.entry()?.ratio(9);
    let legs = entries.done().legs()?.entry()?.note("ten")?.done();
    Ok(legs.done().legs_note("eleven")?.finish())
}

fn decode(bytes: &[u8]) -> Result<(), DecodeError> {
    let leg = LegDecoder::decode(bytes)?;
    assert_eq!((leg.order_id(), leg.order_id_2()), (1, 2));
    assert_eq!((leg.type_(), leg.type_2(), leg.each_legs()), (3, 4, 5));
    assert_eq!((leg.grade(), leg.best()), (Grade::A2, Grade::A2));
    assert_eq!((Grade::A2.raw(), Grade::Level1_2.raw()), (b'a', b'2'));
    assert_eq!((leg.other(), leg.unit()), (Grade2::Only, PriceUnit::Euro));
    assert_eq!(leg.flags().raw(), 1 << 1);
    let price = leg.price();
    assert_eq!((price.amount(), price.amount_2()), (6, 7));
    assert_eq!(price.unit(), PriceUnit2::Cent);
    // Constants are named after the methods.
    type First<'a> = LegDecoder<'a>;
    assert_eq!((First::TYPE_MIN, First::TYPE_2_MAX), (1, 9));
    let (inner, leg) = leg.leg()?;
    assert_eq!(inner.map(|each| each.ratio()).collect::<Vec<_>>(), [8]);
    let (entries, leg) = leg.leg_entry()?;
    assert_eq!(entries.map(|each| each.ratio()).collect::<Vec<_>>(), [9]);
    let leg = leg.each_legs_2(|entry| {
        let (note, entry) = entry.note()?;
        assert_eq!(note.to_str(), Ok("ten"));
        Ok::<_, DecodeError>(entry)
    })?;
    assert_eq!(leg.legs_note()?.0.to_str(), Ok("eleven"));
    Ok(())
}

#[test]
fn conflicting_names_get_distinct_items() {
    let mut buffer = [0; 128];
    let length = encode(&mut buffer).unwrap();
    decode(&buffer[..length]).unwrap();
    let mut other = leg_2::LegEncoder::encode(&mut buffer).unwrap();
    other.count(12);
    let length = other.finish();
    let Ok(Message::Leg2(other)) = Message::decode(&buffer[..length]) else {
        panic!("another message")
    };
    assert_eq!(
        (other.count(), other.to_string()),
        (12, "leg { count: 12, flags: {} }".to_owned())
    );
}

#[test]
fn rust_keywords_as_message_and_group_names_compile() {
    use taran_sbe_codecs::twins::option::{
        OptionDecoder, OptionEncoder, Self_DoneEncoder, Self_Encoder,
    };
    let mut buffer = [0; 64];
    let write = |buffer: &mut [u8]| -> Result<usize, EncodeError> {
        let mut option = OptionEncoder::encode(buffer)?;
        option.some().self_(1);
        let all: Self_Encoder<'_> = option.self_()?;
        let mut one = all.entry()?;
        one.none(2);
        let done: Self_DoneEncoder<'_> = one.done_()?;
        let one = done.entry()?.err("three")?.done().done();
        Ok(one.done().done().done_("four")?.finish())
    };
    let length = write(&mut buffer).unwrap();
    let option = OptionDecoder::decode(&buffer[..length]).unwrap();
    assert_eq!(
        option.to_string(),
        "Option { Some: Copy { self: 1 }, self: [self { None: 2, Done: [Done { Err: \"three\" }] }], done: \"four\" }"
    );
}
