//! Each version reads what every other one writes.

use taran_sbe_codecs::garage_v0::{self, album, ping};
use taran_sbe_codecs::{garage_v1, garage_v2};

use crate::garage;

/// What all versions know is the same, whoever writes and whoever reads.
macro_rules! reads_common {
    ($version:ident, $bytes:expr) => {{
        let car = $version::car::CarDecoder::decode($bytes).unwrap();
        assert_eq!(car.serial(), 0x0102_0304_0506_0708);
        assert_eq!(car.engine().worth().mantissa(), Some(123_456));
        let (repairs, car) = car.repairs().unwrap();
        let days: Vec<_> = repairs.map(|repair| repair.day()).collect();
        assert_eq!(days, [10, 20, 30]);
        let (owners, car) = car.owners().unwrap();
        let names: Vec<_> = owners
            .map(|owner| {
                let (drivers, owner) = owner.drivers().unwrap();
                assert_eq!(drivers.len(), 2);
                let (fines, owner) = owner.fines().unwrap();
                let amounts: Vec<_> = fines.map(|fine| fine.amount()).collect();
                (
                    owner.since(),
                    amounts,
                    owner.name().unwrap().0.to_str().unwrap(),
                )
            })
            .collect();
        let expected = [
            (1999, vec![], "Ada"),
            (2010, vec![-40], "Grace"),
            (2020, vec![], ""),
        ];
        assert_eq!(names, expected);
        let (maker, car) = car.maker().unwrap();
        assert_eq!(maker, "Würth");
        let (notes, car) = car.notes().unwrap();
        assert_eq!(notes, [0, 1, 2, 255]);
        car
    }};
}

#[test]
fn every_version_reads_every_other() {
    for write in [garage::v0, garage::v1, garage::v2] {
        let bytes = garage::bytes(write);
        reads_common!(garage_v0, &bytes);
        reads_common!(garage_v1, &bytes);
        reads_common!(garage_v2, &bytes);
    }
}

#[test]
fn what_an_older_sender_does_not_know_is_absent() {
    let bytes = garage::bytes(garage::v0);
    let car = reads_common!(garage_v2, &bytes);
    assert_eq!(car.acting_version(), 0);
    assert_eq!(car.doors(), None);
    assert_eq!(car.colour(), None);
    assert!(car.backup().is_none());
    assert_eq!(car.nickname(), None);
    assert_eq!(car.second(), None);
    assert_eq!(car.seats(), None);
    assert_eq!(car.slogan().unwrap().0, None);

    let bytes = garage::bytes(garage::v1);
    let car = reads_common!(garage_v2, &bytes);
    assert_eq!(car.doors(), Some(5));
    assert_eq!(car.colour(), Some(0xFF_00_00));
    assert_eq!(car.backup().unwrap().capacity(), 50);
    assert_eq!(car.nickname(), None);
    assert_eq!(car.slogan().unwrap().0.unwrap(), "Vorsprung");
}

#[test]
fn fields_of_entries_are_absent_too() {
    let bytes = garage::bytes(garage::v0);
    let car = garage_v2::car::CarDecoder::decode(&bytes).unwrap();
    let (repairs, _) = car.repairs().unwrap();
    assert!(
        repairs
            .map(|repair| repair.guarantee())
            .all(|guarantee| guarantee.is_none())
    );
}

#[test]
fn what_a_newer_sender_adds_is_passed_over() {
    let mut buffer = [0; 64];
    let mut ping = garage_v2::ping::PingEncoder::encode(&mut buffer).unwrap();
    ping.nonce(5).hops(9);
    let length = ping.finish();
    assert_eq!(length, 8 + 9);
    let ping = ping::PingDecoder::decode(&buffer[..length]).unwrap();
    assert_eq!(ping.nonce(), 5);
    assert_eq!(ping.acting_version(), 2);

    let mut album = garage_v2::album::AlbumEncoder::encode(&mut buffer).unwrap();
    album.number(3);
    let mut pages = album.pages().unwrap();
    pages.entry().unwrap().width(100);
    let mut photos = pages.done().photos().unwrap();
    photos.entry().unwrap().width(7);
    let length = photos.done().finish();
    let album = album::AlbumDecoder::decode(&buffer[..length]).unwrap();
    let (pages, _) = album.pages().unwrap();
    assert_eq!(pages.map(|page| page.width()).collect::<Vec<_>>(), [100]);
}

#[test]
fn groups_that_an_older_sender_does_not_know_are_empty() {
    let mut buffer = [0; 64];
    let album = garage_v0::album::AlbumEncoder::encode(&mut buffer).unwrap();
    let length = album.pages().unwrap().done().finish();
    let album = garage_v2::album::AlbumDecoder::decode(&buffer[..length]).unwrap();
    let (_, album) = album.pages().unwrap();
    let (photos, _) = album.photos().unwrap();
    assert_eq!(photos.len(), 0);
}

#[test]
fn values_that_a_newer_sender_adds_are_unknown_and_kept() {
    let mut buffer = [0; 512];
    let mut car = garage_v1::car::CarEncoder::encode(&mut buffer).unwrap();
    car.fuel(garage_v1::types::Fuel::Electric);
    let car = garage_v0::car::CarDecoder::decode(&buffer).unwrap();
    assert_eq!(car.fuel(), garage_v0::types::Fuel::Unknown(b'E'));
    assert_eq!(car.fuel().raw(), b'E');
}
