//! Simple Binary Encoding 1.0: schemas, codecs, and a decoder that needs none.
//!
//! How the house is laid out, each room seeing only those before it:
//!
//! | module | what it does |
//! |---|---|
//! | [`runtime`] | what generated codecs need when they run: `no_std`, no allocation |
//! | [`model`] | a schema with everything settled: types found, offsets and lengths computed, defaults filled in, and for each thing the line and column where it was written |
//! | [`problem`] | what can be wrong with a schema, as values that know where; errors and warnings |
//! | `charset` | what encodings of characters are called |
//! | `printable` | what schemas say, fit for comments of code and for lines that programs read |
//! | [`xml`] | text to a tree of elements with places, includes put in |
//! | `read` | that tree to a model; what it cannot make sense of becomes a problem |
//! | `check` | the rules of the standard that a model can be held to as a whole |
//! | [`generate`] | model to Rust |
//! | `decode` | model and bytes to values, without generated code |
//! | `describe` | model to a table of offsets |
//! | [`build`] | codecs made by a build script |
//! | `diff` | two models to what changed between them, and whether they can live together |
//!
//! [`compile`] and [`compile_file`] are the way in: they go from text to a model and tell all that is wrong at once.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "compiler"), no_std)]

#[cfg(feature = "compiler")]
pub mod build;
#[cfg(feature = "compiler")]
mod charset;
#[cfg(feature = "compiler")]
mod check;
#[cfg(feature = "compiler")]
pub mod decode;
#[cfg(feature = "compiler")]
pub mod describe;
#[cfg(feature = "compiler")]
pub mod diff;
#[cfg(feature = "compiler")]
pub mod generate;
#[cfg(feature = "compiler")]
pub mod model;
#[cfg(feature = "compiler")]
mod printable;
#[cfg(feature = "compiler")]
pub mod problem;
#[cfg(feature = "compiler")]
mod read;
pub mod runtime;
#[cfg(feature = "compiler")]
pub mod xml;

#[cfg(feature = "compiler")]
mod compile;
#[cfg(feature = "compiler")]
pub use compile::{Compiled, Rejected, compile, compile_file, compile_file_with};
