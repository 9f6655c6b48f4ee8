//! Codecs for the schemas in `schema/`, which use all that there is in SBE.
//!
//! Groups and data have one order, and types keep it. In that order it compiles:
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
//! With data before it, a group cannot be written any more:
//!
//! ```compile_fail,E0599
//! # use taran_sbe::runtime::EncodeError;
//! # use taran_sbe_codecs::garage_v0::car::CarEncoder;
//! fn encode(buffer: &mut [u8]) -> Result<usize, EncodeError> {
//!     Ok(CarEncoder::encode(buffer)?.maker("Ford")?.notes([])?.finish())
//! }
//! ```
//!
//! nor can the message be finished while something is missing:
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
//! nor can the next entry begin before the last one is done:
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
//! Who reads is held to the order too:
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

/// Takes the bytes for a message of each schema, and shows what each makes of them: all that they hold is looked at.
///
/// # Errors
///
/// Those of `out`.
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

/// The same garage, with something added to every block, and to what follows it.
pub mod garage_v1 {
    include!(concat!(env!("OUT_DIR"), "/garage_v1.rs"));
}

/// And once more.
pub mod garage_v2 {
    include!(concat!(env!("OUT_DIR"), "/garage_v2.rs"));
}

/// Discs, with texts in ISO-8859-1, and with members of their own in headers and dimensions.
pub mod music_v0 {
    include!(concat!(env!("OUT_DIR"), "/music_v0.rs"));
}

/// The same discs, with a group and a text more.
pub mod music_v1 {
    include!(concat!(env!("OUT_DIR"), "/music_v1.rs"));
}

/// Prices, big-endian, with headers and dimensions of unusual widths.
pub mod ticks_v5 {
    include!(concat!(env!("OUT_DIR"), "/ticks_v5.rs"));
}

/// The same prices, with fields within and behind the blocks that there were, and texts at the end.
pub mod ticks_v6 {
    include!(concat!(env!("OUT_DIR"), "/ticks_v6.rs"));
}

/// Headers, groups and data with lengths of eight bytes.
pub mod vast {
    include!(concat!(env!("OUT_DIR"), "/vast.rs"));
}

/// Names that are different in the schema and the same in Rust.
pub mod twins {
    include!(concat!(env!("OUT_DIR"), "/twins.rs"));
}

/// Reports of the weather, with null values of their own, and types in another package.
pub mod weather_v0 {
    include!(concat!(env!("OUT_DIR"), "/weather_v0.rs"));
}

/// The same reports, with fields, a group in a group, and a text more.
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

/// What a node of the cluster keeps.
pub mod node {
    include!(concat!(env!("OUT_DIR"), "/node.rs"));
}
