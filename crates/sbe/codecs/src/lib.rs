// SPDX-License-Identifier: Apache-2.0
//! Codecs for the schemas in `schema/`, which together use all features of SBE.
//!
//! Groups and data must be written in schema order, which the types enforce. This compiles:
//!
//! ```
//! use taran_sbe::runtime::EncodeError;
//! use taran_sbe_codecs::garage_v0::car::CarEncoder;
//!
//! fn encode(buffer: &mut [u8]) -> Result<usize, EncodeError> {
//!     let owners = CarEncoder::encode(buffer)?.repairs()?.done().owners()?;
//!     Ok(owners.done().maker("Ford")?.notes([])?.finish())
//! }
//! # encode(&mut [0; 256]).unwrap();
//! ```
//!
//! A group cannot be written after data:
//!
//! ```compile_fail,E0599
//! # use taran_sbe::runtime::EncodeError;
//! # use taran_sbe_codecs::garage_v0::car::CarEncoder;
//! fn encode(buffer: &mut [u8]) -> Result<usize, EncodeError> {
//!     Ok(CarEncoder::encode(buffer)?.maker("Ford")?.notes([])?.finish())
//! }
//! ```
//!
//! The message cannot be finished while an element is missing:
//!
//! ```compile_fail,E0599
//! # use taran_sbe::runtime::EncodeError;
//! # use taran_sbe_codecs::garage_v0::car::CarEncoder;
//! fn encode(buffer: &mut [u8]) -> Result<usize, EncodeError> {
//!     let owners = CarEncoder::encode(buffer)?.repairs()?.done().owners()?;
//!     Ok(owners.done().maker("Ford")?.finish())
//! }
//! ```
//!
//! The next entry cannot begin before the current one is done:
//!
//! ```compile_fail,E0382
//! # use taran_sbe::runtime::EncodeError;
//! # use taran_sbe_codecs::garage_v0::car::CarEncoder;
//! fn encode(buffer: &mut [u8]) -> Result<(), EncodeError> {
//!     let owners = CarEncoder::encode(buffer)?.repairs()?.done().owners()?;
//!     let first = owners.entry()?;
//!     let second = owners.entry()?;
//!     Ok(())
//! }
//! ```
//!
//! Decoders enforce the order too:
//!
//! ```
//! use taran_sbe::runtime::DecodeError;
//! use taran_sbe_codecs::garage_v0::car::CarDecoder;
//!
//! fn decode(bytes: &[u8]) -> Result<(), DecodeError> {
//!     let (repairs, car) = CarDecoder::decode(bytes)?.repairs()?;
//!     let (owners, car) = car.owners()?;
//!     Ok(())
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use taran_sbe::runtime::DecodeError;
//! # use taran_sbe_codecs::garage_v0::car::CarDecoder;
//! fn decode(bytes: &[u8]) -> Result<(), DecodeError> {
//!     let (owners, car) = CarDecoder::decode(bytes)?.owners()?;
//!     let (repairs, car) = car.repairs()?;
//!     Ok(())
//! }
//! ```

#![no_std]
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

/// Decodes the bytes as a message of each schema, and formats all elements of each result.
///
/// # Errors
///
/// Errors of `out`.
pub fn show(bytes: &[u8], out: &mut dyn Write) -> fmt::Result {
    macro_rules! each {
        ($($schema:ident)*) => {
            $(match $schema::Message::decode(bytes) {
                Ok(message) => writeln!(out, "{}: {message}", stringify!($schema))?,
                Err(error) => writeln!(out, "{}: {error}", stringify!($schema))?,
            })*
        };
    }
    each!(garage_v0 garage_v1 garage_v2 music_v0 music_v1 ticks_v5 ticks_v6 vast twins weather_v0 weather_v1 archive archive_mark cluster cluster_mark node);
    Ok(())
}

/// A garage in the first version of its schema.
pub mod garage_v0 {
    include!(concat!(env!("OUT_DIR"), "/garage_v0.rs"));
}

/// Second version: adds fields to every block, and groups and data.
pub mod garage_v1 {
    include!(concat!(env!("OUT_DIR"), "/garage_v1.rs"));
}

/// Third version.
pub mod garage_v2 {
    include!(concat!(env!("OUT_DIR"), "/garage_v2.rs"));
}

/// Discs, with texts in ISO-8859-1, and additional members in headers and dimensions.
pub mod music_v0 {
    include!(concat!(env!("OUT_DIR"), "/music_v0.rs"));
}

/// Second version: adds a group and a text.
pub mod music_v1 {
    include!(concat!(env!("OUT_DIR"), "/music_v1.rs"));
}

/// Prices, big-endian, with headers and dimensions of unusual widths.
pub mod ticks_v5 {
    include!(concat!(env!("OUT_DIR"), "/ticks_v5.rs"));
}

/// Second version: adds fields within and after the existing blocks, and texts at the end.
pub mod ticks_v6 {
    include!(concat!(env!("OUT_DIR"), "/ticks_v6.rs"));
}

/// Headers, groups and data with lengths of eight bytes.
pub mod vast {
    include!(concat!(env!("OUT_DIR"), "/vast.rs"));
}

/// Schema names that map to the same Rust names.
pub mod twins {
    include!(concat!(env!("OUT_DIR"), "/twins.rs"));
}

/// Weather reports, with custom null values and types in another package.
pub mod weather_v0 {
    include!(concat!(env!("OUT_DIR"), "/weather_v0.rs"));
}

/// Second version: adds fields, a nested group and a text.
pub mod weather_v1 {
    include!(concat!(env!("OUT_DIR"), "/weather_v1.rs"));
}

/// The archive's protocol.
pub mod archive {
    include!(concat!(env!("OUT_DIR"), "/archive.rs"));
}

/// The archive's mark file.
pub mod archive_mark {
    include!(concat!(env!("OUT_DIR"), "/archive_mark.rs"));
}

/// The cluster's protocol.
pub mod cluster {
    include!(concat!(env!("OUT_DIR"), "/cluster.rs"));
}

/// The cluster's mark file.
pub mod cluster_mark {
    include!(concat!(env!("OUT_DIR"), "/cluster_mark.rs"));
}

/// Node state file of the cluster.
pub mod node {
    include!(concat!(env!("OUT_DIR"), "/node.rs"));
}
