// SPDX-License-Identifier: Apache-2.0
//! Codecs of three versions, for tests and figures.

#![forbid(unsafe_code)]

/// FIX 4.2.
pub mod fix42 {
    include!(concat!(env!("OUT_DIR"), "/fix42.rs"));
}

/// FIX 4.4.
pub mod fix44 {
    include!(concat!(env!("OUT_DIR"), "/fix44.rs"));
}

/// FIX 5.0 SP2 over FIXT 1.1.
pub mod fix50sp2 {
    include!(concat!(env!("OUT_DIR"), "/fix50sp2.rs"));
}
