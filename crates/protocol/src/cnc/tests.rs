// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use taran_core::memory::Region;
use taran_core::sync::Ordering::Relaxed;

use super::*;

fn small() -> CncSpec {
    CncSpec {
        to_driver_length: 1024 + 768,
        to_clients_length: 1024 + 128,
        counters_metadata_length: 4096,
        counters_values_length: 1024,
        error_log_length: 512,
        ..CncSpec::default()
    }
}

fn created(spec: &CncSpec) -> (Region, Cnc) {
    let region = Region::anonymous(spec.file_length()).unwrap();
    let cnc = Cnc::create(&region, spec).unwrap();
    (region, cnc)
}

#[test]
fn default_file_length_matches_official_driver() {
    assert_eq!(CncSpec::default().file_length(), 48_238_592);
}

#[test]
fn open_created_file_returns_same_spec() {
    let spec = CncSpec {
        driver_pid: 7,
        start_timestamp_ms: 9,
        ..small()
    };
    let (region, cnc) = created(&spec);
    assert_eq!(Cnc::open(&region).unwrap_err(), CncError::NotReady);
    cnc.publish();
    let opened = Cnc::open(&region).unwrap();
    assert_eq!(opened.spec(), &spec);
    assert_eq!(opened.client_liveness_timeout(), Duration::from_secs(10));
    let lengths = [
        &opened.to_driver,
        &opened.to_clients,
        &opened.counters_metadata,
        &opened.counters_values,
        &opened.error_log,
    ]
    .map(Region::len);
    assert_eq!(lengths, [1792, 1152, 4096, 1024, 512]);
}

#[test]
fn sections_are_contiguous_after_header() {
    let (region, cnc) = created(&small());
    cnc.to_driver.write(0, &[1]);
    cnc.error_log.write(511, &[5]);
    assert_eq!(region.bytes(128, 1), [1]);
    assert_eq!(region.bytes(128 + 1792 + 1152 + 4096 + 1024 + 511, 1), [5]);
}

#[test]
fn page_size_zero_is_read_as_4096() {
    let (region, cnc) = created(&small());
    cnc.header.page_size.store(0, Relaxed);
    cnc.publish();
    assert_eq!(Cnc::open(&region).unwrap().spec().page_size, 4096);
}

#[test]
fn page_size_not_power_of_two_is_rejected() {
    let (region, cnc) = created(&small());
    cnc.publish();
    for page_size in [1, 4096, 1 << 30] {
        cnc.header.page_size.store(page_size, Relaxed);
        assert_eq!(Cnc::open(&region).unwrap().spec().page_size, page_size);
    }
    for page_size in [3, 4095, -4096, i32::MIN, i32::MAX] {
        cnc.header.page_size.store(page_size, Relaxed);
        assert_eq!(
            Cnc::open(&region).unwrap_err(),
            CncError::PageSize(page_size)
        );
    }
}

#[test]
fn open_other_version_is_rejected() {
    let (region, cnc) = created(&small());
    for (version, is_fine) in [
        (Version::new(0, 2, 0), true),
        (Version::new(0, 2, 9), true),
        (Version::new(0, 3, 0), true),
        (Version::new(0, 1, 255), false),
        (Version::new(1, 2, 0), false),
        (Version(-1), false),
    ] {
        cnc.header.version.store(version.0, Relaxed);
        let expected = if is_fine {
            None
        } else {
            Some(CncError::Version {
                found: version,
                expected: CNC_VERSION,
            })
        };
        assert_eq!(Cnc::open(&region).err(), expected, "{version}");
    }
}

#[test]
fn open_short_file_reports_needed_length() {
    let region = Region::anonymous(127).unwrap();
    assert_eq!(
        Cnc::open(&region).unwrap_err(),
        CncError::TooShort {
            length: 127,
            needed: 128
        }
    );
    let (region, cnc) = created(&small());
    cnc.publish();
    cnc.header.error_log_length.store(1 << 20, Relaxed);
    let needed = 128 + 1792 + 1152 + 4096 + 1024 + (1 << 20);
    assert_eq!(
        Cnc::open(&region).unwrap_err(),
        CncError::TooShort {
            length: region.len(),
            needed
        }
    );
}

proptest! {
    #[test]
    fn open_random_header_never_leaves_file(header in proptest::array::uniform32(any::<i32>()), small in any::<bool>()) {
        let region = Region::anonymous(16_384).unwrap();
        for (index, word) in header.iter().enumerate() {
            let word = if small { word.rem_euclid(4096) } else { *word };
            region.atomic_i32(index * 4).store(word, Relaxed);
        }
        region.atomic_i32(0).store(CNC_VERSION.0, Relaxed);
        if let Ok(cnc) = Cnc::open(&region) {
            let total = [&cnc.to_driver, &cnc.to_clients, &cnc.counters_metadata, &cnc.counters_values, &cnc.error_log]
                .map(Region::len)
                .iter()
                .sum::<usize>();
            prop_assert!(128 + total <= region.len());
        }
    }
}
