//! Replicated state machine that speaks Aeron Cluster (`docs/spec/cluster.md`).
//!
//! * [`consensus`] elects leaders and decides what is committed, without I/O.
//! * [`files`] reads and writes what a member knows at its start, as bytes.
//! * [`protocol`] has a type for each message between members, with encoding and checked decoding.
//! * [`codecs`] are the generated SBE codecs below it.

#![forbid(unsafe_code)]

pub mod codecs;
pub mod consensus;
pub mod files;
pub mod protocol;
