// SPDX-License-Identifier: Apache-2.0
//! Frames as a backend sees them: built and parsed, changed and cut, made by Linux, and beside `etherparse`.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

mod beside_etherparse;
mod datagrams;
mod linux;
mod samples;

use proptest::prelude::*;
use taran_ether::{Frame, FrameError, RefusalClass, Verification};

use samples::samples;

#[test]
fn parse_of_each_truncated_frame_is_refused_as_malformed() {
    for sample in samples() {
        for length in 0..sample.bytes.len() {
            let refused = Frame::parse(&sample.bytes[..length], Verification::STRICT).unwrap_err();
            assert_eq!(
                refused.class(),
                RefusalClass::Malformed,
                "{} cut to {length}: {refused}",
                sample.name
            );
        }
    }
}

#[test]
fn parse_of_a_frame_with_padding_reads_the_same() {
    for sample in samples() {
        let whole = Frame::parse(&sample.bytes, Verification::STRICT);
        let mut padded = sample.bytes.clone();
        padded.resize(padded.len() + 18, 0xEE);
        assert!(whole.is_ok(), "{}: {whole:?}", sample.name);
        assert_eq!(Frame::parse(&padded, Verification::STRICT), whole);
    }
}

#[test]
fn parse_of_a_frame_with_a_flipped_bit_is_refused_where_a_checksum_covers_it() {
    for sample in samples() {
        let mut flips = 0;
        for at in sample.covered.clone() {
            for bit in 0..8 {
                let mut bytes = sample.bytes.clone();
                bytes[at] ^= 1 << bit;
                let parsed = Frame::parse(&bytes, Verification::STRICT);
                assert!(parsed.is_err(), "{} byte {at} bit {bit}", sample.name);
                flips += 1;
            }
        }
        assert_eq!(flips > 0, sample.has_checksum, "{}", sample.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parse_of_any_bytes_returns(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::parse(&bytes, Verification::STRICT);
    }

    #[test]
    fn parse_of_a_changed_frame_returns_views_of_it(index: prop::sample::Index, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = samples()[index.index(samples().len())].bytes.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(frame) = Frame::parse(&bytes, Verification::STRICT) {
            samples::assert_views(&frame, &bytes);
        }
    }
}

#[test]
fn parse_of_fragments_and_source_routes_names_the_reason() {
    let udp = samples::udp("10.0.0.1:7", "10.0.0.2:9", None, b"payload");
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = udp.clone();
        change(&mut bytes);
        samples::repair_ipv4(&mut bytes);
        Frame::parse(&bytes, Verification::STRICT).unwrap_err()
    };
    let with_options = |options: [u8; 4]| {
        refused(&|bytes: &mut Vec<u8>| {
            bytes.splice(34..34, options);
            bytes[14] = 0x46;
            let total = (bytes.len() - 14) as u16;
            bytes[16..18].copy_from_slice(&total.to_be_bytes());
        })
    };
    assert_eq!(refused(&|bytes| bytes[20] = 0x20), FrameError::Fragment);
    assert_eq!(refused(&|bytes| bytes[21] = 1), FrameError::Fragment);
    assert_eq!(refused(&|bytes| bytes[20] = 0x80), FrameError::Ipv4Flags);
    assert_eq!(
        refused(&|bytes| bytes[14] = 0x44),
        FrameError::Ipv4HeaderLength
    );
    assert_eq!(refused(&|bytes| bytes[14] = 0x55), FrameError::Ipv4Version);
    assert_eq!(refused(&|bytes| bytes[23] = 6), FrameError::Protocol);
    assert_eq!(refused(&|bytes| bytes[26] = 224), FrameError::Ipv4Source);
    assert_eq!(refused(&|bytes| bytes[26] = 127), FrameError::Ipv4Source);
    assert_eq!(
        refused(&|bytes| bytes[30] = 127),
        FrameError::Ipv4Destination
    );
    assert_eq!(with_options([131, 4, 4, 0]), FrameError::Ipv4SourceRoute);
    assert_eq!(with_options([7, 5, 4, 0]), FrameError::Ipv4Options);
    assert_eq!(with_options([7, 1, 4, 0]), FrameError::Ipv4Options);
    assert_eq!(with_options([1, 1, 1, 7]), FrameError::Ipv4Options);
}

#[test]
fn parse_of_extension_headers_skips_what_is_harmless_and_refuses_the_rest() {
    let parse = |first: u8, extensions: &[u8]| {
        let mut bytes = samples::udp("[fd00::1]:7", "[fd00::2]:9", None, b"payload");
        bytes.splice(54..54, extensions.iter().copied());
        bytes[20] = first;
        let length = (bytes.len() - 54) as u16;
        bytes[18..20].copy_from_slice(&length.to_be_bytes());
        let frame = Frame::parse(&bytes, Verification::STRICT);
        frame.map(|frame| samples::udp_payload(&frame).to_vec())
    };
    let passes = Ok(b"payload".to_vec());
    let padded = [17, 0, 1, 4, 0, 0, 0, 0];
    // Hop-by-hop options, destination options, an unknown option that is skipped.
    assert_eq!(parse(0, &padded), passes);
    assert_eq!(parse(60, &padded), passes);
    assert_eq!(parse(60, &[17, 0, 0x1E, 4, 0, 0, 0, 0]), passes);
    // A routing header that is done, an atomic fragment.
    assert_eq!(parse(43, &[17, 0, 0, 0, 0, 0, 0, 0]), passes);
    assert_eq!(parse(44, &[17, 0, 0, 0, 1, 2, 3, 4]), passes);

    let refused = |first, extensions: &[u8]| parse(first, extensions).unwrap_err();
    assert_eq!(
        refused(43, &[17, 0, 0, 1, 0, 0, 0, 0]),
        FrameError::Ipv6Routing
    );
    assert_eq!(
        refused(44, &[17, 0, 0, 1, 1, 2, 3, 4]),
        FrameError::Fragment
    );
    assert_eq!(
        refused(44, &[17, 0, 0, 8, 1, 2, 3, 4]),
        FrameError::Fragment
    );
    assert_eq!(
        refused(60, &[17, 0, 0x5E, 4, 0, 0, 0, 0]),
        FrameError::Ipv6UnknownOption
    );
    assert_eq!(
        refused(60, &[17, 0, 1, 5, 0, 0, 0, 0]),
        FrameError::Ipv6Options
    );
    assert_eq!(
        refused(60, &[17, 9, 1, 4, 0, 0, 0, 0]),
        FrameError::Ipv6Extension
    );
    let behind = |first: u8, second: u8| {
        let mut extensions = padded.to_vec();
        extensions[0] = second;
        extensions.extend(padded);
        refused(first, &extensions)
    };
    assert_eq!(behind(60, 0), FrameError::Ipv6ExtensionOrder);
    let three = [
        60, 0, 1, 4, 0, 0, 0, 0, 60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0,
    ];
    assert_eq!(refused(60, &three), FrameError::Ipv6ExtensionOrder);
}
