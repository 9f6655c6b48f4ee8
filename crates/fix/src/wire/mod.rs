// SPDX-License-Identifier: Apache-2.0
//! Bytes of FIX messages: frames, fields, values, and their writers. No allocation except where a function says so.

mod field;
mod frame;
pub mod tag;
mod value;
mod write;

pub use field::{Field, FieldFault, Fields, data_partner, is_header, is_trailer};
pub use frame::{Frame, Framed, Framer, Garbled, Resync, checksum};
pub use value::{Decimal, Precision, Timestamp, int, is_char, unsigned};
pub(crate) use value::{date_days, time_nanos};
pub use write::{Header, WriteError, Writer, seal};

/// Delimiter that ends each field.
pub const SOH: u8 = 1;
