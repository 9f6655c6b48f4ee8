// SPDX-License-Identifier: Apache-2.0
//! Tests of generated codecs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod book;
#[path = "../random/chance.rs"]
mod chance;
mod garage;
mod music;
mod quote;
mod weather;

mod alike;
mod arbitrary;
mod bare;
mod behind;
mod evolution;
mod fields;
mod full;
mod generic;
mod order;
mod own;
mod refused;
mod rustc;
mod shown;
mod text;
mod twins;
