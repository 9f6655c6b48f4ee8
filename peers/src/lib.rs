//! What the programs of this package share.
//!
//! * `compare` runs the others, and makes tables, JSON and a page of what they tell it.
//! * `drivers` has a driver of whoever's choice below our client.
//! * `clients` has a client of whoever's choice above a driver that runs.

#![forbid(unsafe_code)]

#[cfg(feature = "official")]
pub mod bench;
pub mod measured;
