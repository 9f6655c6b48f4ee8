// SPDX-License-Identifier: Apache-2.0
//! A car in each version of its schema.

use taran_sbe::runtime::EncodeError;
use taran_sbe_codecs::{garage_v0, garage_v1, garage_v2};

/// Expands to the same statements for each version, whose types differ.
macro_rules! car {
    ($version:ident, $buffer:expr, $fields:expr, $repair:expr, $fine:expr, |$last:ident| $end:expr) => {{
        use $version::car::CarEncoder;
        use $version::types::{EngineBoosterFlags, EngineBoosterKind, EngineState, Extras};
        use $version::types::{Fuel, Priority, Wide, YesNo};

        let mut car = CarEncoder::encode($buffer)?;
        car.serial(0x0102_0304_0506_0708)
            .model_year(1998)
            .available(YesNo::Yes)
            .fuel(Fuel::Diesel)
            .extras(Extras::SUN_ROOF | Extras::CRUISE_CONTROL)
            .wide(Wide::LAST)
            .hash(&[0xDE, 0xAD, 0xBE, 0xEF])
            .trips(&[-1, 0, i32::MAX])
            .offsets(&[-128, 0, 127])
            .percent(100)
            .debt(-250)
            .odd(None)
            .mass(1.5)
            .drag(-0.25)
            .initial(b'Q')
            .priority(Priority::LowAtAll)
            .plate("B TR 1")?;
        #[allow(deprecated)]
        car.type_(9);
        let mut engine = car.engine();
        engine
            .capacity(1968)
            .cylinders(4)
            .burns(Fuel::Petrol)
            .state(EngineState::Running)
            .maker("VAG")?;
        engine
            .booster()
            .kind(EngineBoosterKind::Nitrous)
            .power(210)
            .flags(EngineBoosterFlags::HOT);
        engine.worth().mantissa(123_456);
        $fields(&mut car);
        let mut repairs = car.repairs()?;
        for day in [10, 20, 30] {
            let mut repair = repairs.entry()?;
            repair.day(day);
            repair.cost().mantissa(i64::from(day) * 100);
            $repair(&mut repair);
        }
        let mut owners = repairs.done().owners()?;
        for (since, name) in [(1999, "Ada"), (2010, "Grace"), (2020, "")] {
            let mut owner = owners.entry()?;
            owner.since(since);
            let mut drivers = owner.drivers()?;
            for (age, licence) in [(18, "A1"), (81, "")] {
                let mut driver = drivers.entry()?;
                driver.age(age);
                drivers = driver.licence(licence)?.done();
            }
            let mut fines = drivers.done().fines()?;
            if since == 2010 {
                let mut fine = fines.entry()?;
                fine.amount(-40);
                $fine(&mut fine);
            }
            owners = fines.done().name(name)?.done();
        }
        let $last = owners.done().maker("Würth")?.notes([0, 1, 2, 255])?;
        Ok($end.finish())
    }};
}

/// Encodes a car of the first version and returns its length.
pub(crate) fn v0(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    car!(garage_v0, buffer, |_| {}, |_| {}, |_| {}, |car| car)
}

/// Encodes the same message with the additions of the second version.
pub(crate) fn v1(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    use garage_v1::car::{OwnersFinesEntryEncoder, RepairsEntryEncoder};
    car!(
        garage_v1,
        buffer,
        |car: &mut CarEncoder<'_>| {
            car.doors(5).colour(0xFF_00_00);
            car.backup().capacity(50);
        },
        |repair: &mut RepairsEntryEncoder<'_>| {
            repair.guarantee(YesNo::Yes);
        },
        |fine: &mut OwnersFinesEntryEncoder<'_>| {
            fine.paid(40);
        },
        |car| car.slogan("Vorsprung")?
    )
}

/// Encodes the same message with the additions of the third version.
pub(crate) fn v2(buffer: &mut [u8]) -> Result<usize, EncodeError> {
    use garage_v2::car::{OwnersFinesEntryEncoder, RepairsEntryEncoder};
    car!(
        garage_v2,
        buffer,
        |car: &mut CarEncoder<'_>| {
            car.doors(3).colour(None);
            car.second(Fuel::Electric).seats(&[1, 2, 3]);
            assert!(car.nickname("Bug").is_ok());
        },
        |repair: &mut RepairsEntryEncoder<'_>| {
            repair.guarantee(YesNo::No);
        },
        |fine: &mut OwnersFinesEntryEncoder<'_>| {
            fine.paid(None);
        },
        |car| car.slogan("Läuft")?
    )
}

/// Returns the bytes of a car.
pub(crate) fn bytes(write: fn(&mut [u8]) -> Result<usize, EncodeError>) -> Vec<u8> {
    let mut buffer = vec![0xAA; 1024];
    let length = write(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}
