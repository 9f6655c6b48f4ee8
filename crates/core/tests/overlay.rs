// SPDX-License-Identifier: Apache-2.0
//! Overlays as other crates declare them: without any `unsafe` of their own.
#![forbid(unsafe_code)]
#![cfg(not(loom))]

use taran_core::{
    memory::{Padding, Region},
    overlay,
    sync::{AtomicI32, AtomicI64, Ordering},
};

overlay! {
    /// A layout with a gap and an array.
    pub struct Layout: 128 {
        /// Comes last.
        0 => version: AtomicI32,
        4 => padding_4: Padding<4>,
        8 => tails: [AtomicI64; 3],
        32 => padding_32: Padding<96>,
    }
}

#[test]
fn an_overlay_shows_the_bytes_of_its_region() {
    let region = Region::anonymous(256).unwrap();
    let layout = region.overlay::<Layout>(128).unwrap();
    layout.tails[1].store(0x0102_0304, Ordering::Release);
    layout.version.store(-1, Ordering::Release);
    assert_eq!([4, 3, 2, 1, 0, 0, 0, 0], region.bytes(144, 8));
    assert_eq!([0xFF; 4], region.bytes(128, 4));
    assert!(region.overlay::<Layout>(136).is_err());
}
