// SPDX-License-Identifier: Apache-2.0
//! Round trips of fields of each kind, groups and data.

use taran_sbe::runtime::DecodeError;
use taran_sbe_codecs::garage_v2::car::{CarDecoder, CarEncoder};
use taran_sbe_codecs::garage_v2::types::{
    EngineBoosterFlags, EngineBoosterKind, EngineState, Extras, Fuel, Priority, Wide, YesNo,
};
use taran_sbe_codecs::ticks_v5;
use taran_sbe_codecs::vast::asked::{AskedDecoder, AskedEncoder};
use taran_sbe_codecs::vast::ranges::{RangesDecoder, RangesEncoder};

use crate::{garage, quote};

#[test]
#[allow(deprecated)]
fn fields_of_each_kind_round_trip() {
    let bytes = garage::bytes(garage::v2);
    let car = CarDecoder::decode(&bytes).unwrap();
    assert_eq!(car.acting_version(), 2);
    assert_eq!(car.serial(), 0x0102_0304_0506_0708);
    assert_eq!(car.model_year(), 1998);
    assert_eq!(car.available(), YesNo::Yes);
    assert_eq!(car.fuel(), Fuel::Diesel);
    assert_eq!(car.plate(), "B TR 1");
    assert_eq!(car.plate().field(), b"B TR 1\0\0");
    assert_eq!(car.extras(), Extras::SUN_ROOF.with(Extras::CRUISE_CONTROL));
    assert!(!car.extras().contains(Extras::SPORTS_PACK));
    assert_eq!(car.extras().raw(), 0x81);
    assert_eq!(car.wide().raw(), 1 << 63);
    assert_eq!(car.wide(), Wide::LAST);
    assert_eq!(car.hash(), &[0xDE, 0xAD, 0xBE, 0xEF]);
    assert_eq!(car.trips(), [-1, 0, i32::MAX]);
    assert_eq!(car.offsets(), [-128, 0, 127]);
    assert_eq!(car.percent(), 100);
    assert_eq!(car.debt(), Some(-250));
    assert_eq!(car.odd(), None);
    assert_eq!(car.mass(), Some(1.5));
    assert_eq!(car.drag().to_bits(), (-0.25_f32).to_bits());
    assert_eq!(car.initial(), b'Q');
    assert_eq!(car.priority(), Some(Priority::LowAtAll));
    assert_eq!(car.wheels(), 4);
    assert_eq!(car.motto(), "As good as new");
    assert_eq!(car.cheap(), YesNo::No);
    assert_eq!(car.type_(), 9);
    let engine = car.engine();
    assert_eq!(engine.capacity(), 1968);
    assert_eq!(engine.cylinders(), 4);
    assert_eq!(engine.max_rpm(), 9000);
    assert_eq!(engine.maker(), "VAG");
    assert_eq!(engine.burns(), Fuel::Petrol);
    assert_eq!(engine.state(), EngineState::Running);
    assert_eq!(engine.booster().kind(), EngineBoosterKind::Nitrous);
    assert_eq!(engine.booster().power(), 210);
    assert_eq!(engine.booster().flags(), EngineBoosterFlags::HOT);
    assert_eq!(engine.worth().mantissa(), Some(123_456));
    assert_eq!(engine.worth().exponent(), -2);
    assert_eq!(car.doors(), Some(3));
    assert_eq!(car.colour(), None);
    assert_eq!(car.backup().unwrap().worth().mantissa(), None);
    assert_eq!(car.nickname().unwrap(), "Bug");
    assert_eq!(car.second(), Some(Fuel::Electric));
    assert_eq!(car.seats(), Some([1, 2, 3]));
}

#[test]
fn groups_and_data_decode_in_order() {
    let bytes = garage::bytes(garage::v2);
    let car = CarDecoder::decode(&bytes).unwrap();
    let (repairs, car) = car.repairs().unwrap();
    assert_eq!(repairs.len(), 3);
    let repairs: Vec<_> = repairs
        .map(|repair| (repair.day(), repair.cost().mantissa(), repair.guarantee()))
        .collect();
    assert_eq!(
        repairs,
        [
            (10, Some(1000), Some(YesNo::No)),
            (20, Some(2000), Some(YesNo::No)),
            (30, Some(3000), Some(YesNo::No)),
        ]
    );
    let (owners, car) = car.owners().unwrap();
    let mut names = Vec::new();
    for owner in owners {
        let (drivers, owner) = owner.drivers().unwrap();
        let drivers: Vec<_> = drivers
            .map(|driver| {
                let (licence, _) = driver.licence().unwrap();
                (driver.age(), licence.to_str().unwrap())
            })
            .collect();
        assert_eq!(drivers, [(18, "A1"), (81, "")]);
        let (fines, owner) = owner.fines().unwrap();
        let fines: Vec<_> = fines.map(|fine| (fine.amount(), fine.paid())).collect();
        let (name, owner) = owner.name().unwrap();
        // Fields can be read in any state of the decoder.
        names.push((owner.since(), fines, name.to_str().unwrap()));
    }
    assert_eq!(
        names,
        [
            (1999, vec![], "Ada"),
            (2010, vec![(-40, None)], "Grace"),
            (2020, vec![], ""),
        ]
    );
    let (maker, car) = car.maker().unwrap();
    assert_eq!(maker, "Würth");
    let (notes, car) = car.notes().unwrap();
    assert_eq!(notes, [0, 1, 2, 255]);
    let (slogan, car) = car.slogan().unwrap();
    assert_eq!(slogan.unwrap(), "Läuft");
    assert_eq!(car.serial(), 0x0102_0304_0506_0708);
}

#[test]
fn group_callback_reads_all_entries() {
    let bytes = garage::bytes(garage::v2);
    let (_, car) = CarDecoder::decode(&bytes).unwrap().repairs().unwrap();
    let mut read = Vec::new();
    let car = car
        .each_owners(|owner| {
            let mut licences = Vec::new();
            let owner = owner.each_drivers(|driver| {
                let (licence, driver) = driver.licence()?;
                licences.push(licence.to_str().unwrap());
                Ok::<_, DecodeError>(driver)
            })?;
            let (_, owner) = owner.fines()?;
            let (name, owner) = owner.name()?;
            read.push((owner.since(), licences, name.to_str().unwrap()));
            Ok::<_, DecodeError>(owner)
        })
        .unwrap();
    let expected = [(1999, "Ada"), (2010, "Grace"), (2020, "")];
    let expected = expected.map(|(since, name)| (since, vec!["A1", ""], name));
    assert_eq!(read, expected);
    assert_eq!(car.maker().unwrap().0, "Würth");
}

#[test]
fn group_callback_error_is_returned() {
    #[derive(Debug, PartialEq)]
    enum Error {
        Enough,
        Decode(DecodeError),
    }
    impl From<DecodeError> for Error {
        fn from(error: DecodeError) -> Self {
            Self::Decode(error)
        }
    }
    let bytes = garage::bytes(garage::v2);
    let (_, car) = CarDecoder::decode(&bytes).unwrap().repairs().unwrap();
    let error = car.each_owners(|_| Err(Error::Enough)).unwrap_err();
    assert_eq!(error, Error::Enough);
    let (_, car) = CarDecoder::decode(&bytes[..190])
        .unwrap()
        .repairs()
        .unwrap();
    let error = car
        .each_owners(|owner| {
            let (_, owner) = owner.drivers()?;
            let (_, owner) = owner.fines()?;
            Ok::<_, Error>(owner.name()?.1)
        })
        .unwrap_err();
    assert!(
        matches!(error, Error::Decode(DecodeError::Short { .. })),
        "{error:?}"
    );
}

#[test]
fn unset_fields_are_null_if_optional_otherwise_zero() {
    let mut buffer = [0xAA; 512];
    let car = CarEncoder::encode(&mut buffer).unwrap();
    let owners = car.repairs().unwrap().done().owners().unwrap();
    let car = owners.done().maker("").unwrap().notes("").unwrap();
    let length = car.slogan("").unwrap().finish();
    let car = CarDecoder::decode(&buffer[..length]).unwrap();
    assert_eq!(car.serial(), 0);
    assert_eq!(car.plate(), "");
    assert_eq!(car.available(), YesNo::NULL);
    assert_eq!(car.available(), YesNo::Unknown(255));
    assert_eq!((car.debt(), car.odd(), car.mass()), (None, None, None));
    assert_eq!(car.priority(), None);
    assert_eq!(car.engine().worth().mantissa(), None);
    assert_eq!(car.engine().booster().flags(), EngineBoosterFlags::NONE);
    assert_eq!(car.colour(), None);
    // The gap before `wide` is zeroed.
    assert_eq!(car.block_bytes()[21..24], [0, 0, 0]);
}

#[test]
fn big_endian_message_with_custom_header_matches_schema_layout() {
    use ticks_v5::quote::QuoteDecoder;
    use ticks_v5::types::Side;

    let bytes = &garage::bytes(quote::v5);
    // version, blockLength, magic, schemaId, templateId, numGroups, numVarDataFields.
    assert_eq!(
        bytes[..ticks_v5::HEADER_LENGTH],
        [5, 0, 64, 0xBE, 0xEF, 0, 1, 0x11, 0x70, 200, 2, 1]
    );
    assert_eq!(bytes[12..16], [0; 4]);
    assert_eq!(bytes[16..24], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[24..32], i64::MAX.to_be_bytes());
    assert_eq!(bytes[32..40], 1.0_f64.to_be_bytes());
    assert_eq!(bytes[48..50], [0, 3]);
    assert_eq!(bytes[50..54], [0x80, 0, 0, 1]);
    assert_eq!(bytes[54..58], (-1.5_f32).to_be_bytes());
    // numInGroup, a gap, blockLength, numGroups, numVarDataFields.
    assert_eq!(bytes[76..88], [0, 0, 0, 2, 0, 0, 0, 12, 0, 0, 0, 1]);

    let quote = QuoteDecoder::decode(bytes).unwrap();
    assert_eq!((quote.price(), quote.gap()), (None, None));
    assert_eq!(quote.side(), Side::Unknown_);
    let (levels, quote) = quote.levels().unwrap();
    let levels: Vec<_> = levels
        .map(|level| (level.price(), level.size(), level.tag().unwrap().0))
        .collect();
    assert_eq!(
        levels,
        [
            (Some(1), 7, b"a".as_slice()),
            (Some(-1), 7, b"bc".as_slice())
        ]
    );
    let (legs, quote) = quote.legs().unwrap();
    assert_eq!(legs.map(|leg| leg.ratio()).collect::<Vec<_>>(), [-3]);
    assert_eq!(quote.raw().unwrap().0, [9; 3]);
}

#[test]
fn out_of_range_returns_first_field_outside_range() {
    let mut buffer = [0; 512];
    let mut car = CarEncoder::encode(&mut buffer).unwrap();
    car.percent(CarDecoder::PERCENT_MAX);
    let car = CarDecoder::decode(&buffer).unwrap();
    assert_eq!((CarDecoder::PERCENT_MIN, car.percent()), (0, 100));
    assert_eq!(car.out_of_range(), None);
    CarEncoder::encode(&mut buffer).unwrap().percent(101);
    let car = CarDecoder::decode(&buffer).unwrap();
    assert_eq!(car.percent(), 101, "it is read all the same");
    assert_eq!(car.out_of_range(), Some("percent"));
}

#[test]
fn out_of_range_checks_present_options_arrays_and_composites() {
    let found = |write: &dyn Fn(&mut RangesEncoder<'_>)| {
        let mut buffer = [0; 128];
        write(&mut RangesEncoder::encode(&mut buffer).unwrap());
        RangesDecoder::decode(&buffer).unwrap().out_of_range()
    };
    assert_eq!(
        (RangesDecoder::NORTH_MIN, RangesDecoder::NORTH_MAX),
        (-90, 90)
    );
    assert_eq!(found(&|_| {}), None, "null is in range");
    assert_eq!(
        found(&|message| {
            let _ = message.height(i32::MAX);
        }),
        None
    );
    assert_eq!(
        found(&|message| {
            let _ = message.north(-90);
        }),
        None
    );
    assert_eq!(
        found(&|message| {
            let _ = message.north(91);
        }),
        Some("north")
    );
    assert_eq!(
        found(&|message| {
            let _ = message.shares(&[1.0, 1.5]);
        }),
        Some("shares")
    );
    assert_eq!(
        found(&|message| {
            let _ = message.shares(&[f64::NAN, 0.0]);
        }),
        Some("shares")
    );
    assert_eq!(
        found(&|message| {
            let _ = message.marks(&[1, 255, 2]);
        }),
        None
    );
    assert_eq!(
        found(&|message| {
            let _ = message.marks(&[1, 0, 2]);
        }),
        Some("marks")
    );
    assert_eq!(
        found(&|message| {
            let _ = message.marks(&[1, 0, 2]).marks(None);
        }),
        None
    );
    assert_eq!(
        found(&|message| {
            let _ = message.spot().north(-91);
        }),
        Some("spot")
    );
}

#[test]
fn enum_value_named_null_differs_from_null_value() {
    use taran_sbe_codecs::vast::types::Answer;
    let mut buffer = [0; 64];
    let mut asked = AskedEncoder::encode(&mut buffer).unwrap();
    asked.meant(None);
    assert_eq!(asked.block_bytes(), &[255; 3]);
    asked.said(Answer::NULL_).meant(Some(Answer::NULL_));
    assert_eq!(asked.block_bytes(), &[1, 1, 255]);
    let asked = AskedDecoder::decode(&buffer).unwrap();
    assert_eq!(asked.said(), Answer::NULL_);
    assert_eq!(asked.meant(), Some(Answer::NULL_));
    assert_eq!(asked.hoped(), None);
}
