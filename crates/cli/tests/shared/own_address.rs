// SPDX-License-Identifier: Apache-2.0
//! Addresses for tests that run concurrently.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

/// Returns a loopback address that no other test of this machine uses, so that all its ports are free.
pub(crate) fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < 255, "no address is left");
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, number)
}
