// SPDX-License-Identifier: Apache-2.0
//! Simple Binary Encoding (SBE) 1.0: schema compiler, code generator, and a schema-driven decoder.
//!
//! Modules, each depending only on those above it:
//!
//! | module | contents |
//! |---|---|
//! | [`runtime`] | support code for generated codecs: `no_std`, no allocation |
//! | [`model`] | resolved schema: type references, offsets, lengths and defaults, with source positions |
//! | [`problem`] | errors and warnings of a schema, with positions |
//! | `charset` | names of character encodings |
//! | `printable` | sanitizing of schema text for source comments and machine-readable lines |
//! | [`xml`] | XML text to an element tree with positions; resolves includes |
//! | `read` | element tree to model; invalid elements become problems |
//! | `check` | validation rules that apply to the whole model |
//! | [`generate`] | model to Rust code |
//! | [`decode`] | schema-driven decoder without generated code |
//! | [`describe`] | model to a table of offsets |
//! | [`build`] | code generation in build scripts |
//! | [`diff`] | differences and compatibility of two models |
//!
//! [`compile`] and [`compile_file`] are the entry points: they compile a schema to a model and report all problems at once.

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
