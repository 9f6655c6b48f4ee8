// SPDX-License-Identifier: Apache-2.0
//! SBE codecs of the archive's schemas, version 13 of the control protocol and version 2 of the mark file.
//!
//! [`protocol`](crate::protocol) has typed messages on top of them.

/// Messages of the control protocol, and entries of the catalog (schema id 101).
pub mod control {
    include!(concat!(env!("OUT_DIR"), "/control.rs"));
}

/// Header of the mark file (schema id 100).
pub mod mark {
    include!(concat!(env!("OUT_DIR"), "/mark.rs"));
}
