// SPDX-License-Identifier: Apache-2.0
//! Recordings in one file, to keep them elsewhere or to bring them into another archive.
//!
//! A file has these parts; numbers are little endian, checksums CRC-32C.
//!
//! | part | bytes |
//! |---|---|
//! | magic | `TARANREC` |
//! | version | u32, 1 |
//! | length of the description | u32 |
//! | description | the fields and texts of a catalog entry (`docs/spec/archive.md` §3.2); the start position is that of the first frame |
//! | checksum | u32, of all bytes before |
//! | blocks | see below |
//! | end | length 0 (u32), checksum (u32) of the rest: end position (i64), number of frames (u64) |
//!
//! | part of a block | bytes |
//! |---|---|
//! | length of the frames | u32, more than 0 |
//! | checksum | u32, of the rest |
//! | position of the first frame | i64 |
//! | frames | whole frames as in segment files; of padding only the header |

mod export;
mod import;
#[cfg(test)]
mod tests;

pub use export::{ExportError, ExportWriter, Exported, export};
pub use import::{ImportError, Imported};

/// First bytes of a file.
const MAGIC: [u8; 8] = *b"TARANREC";
/// Version of the format.
const VERSION: u32 = 1;
/// Length of a block at which it is written, in bytes.
const BLOCK: usize = 1 << 20;
/// Longest description that is read, in bytes: three texts of 64 KiB.
const DESCRIPTION_MAX: u32 = 256 * 1024;
