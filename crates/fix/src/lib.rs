// SPDX-License-Identifier: Apache-2.0
//! FIX: framing, dictionaries, generated codecs, and the session state machine.
//!
//! | module | contents |
//! |---|---|
//! | [`wire`] | frames, fields, values and their writers |
//! | [`codec`] | support for generated codecs |
//! | [`generate`] | dictionary to Rust code |
//! | [`build`] | code generation in build scripts |
//! | [`session`] | the session layer of acceptor and initiator as a state machine |
//! | [`dict`] | dictionaries: model, checks of messages at run time; readers of QuickFIX XML and Orchestra |
//!
//! Facts about the protocol are in `docs/spec/fix-gateway.md`. Nothing here opens a socket or file, or reads a clock,
//! except the functions that read a dictionary from a file.

#![forbid(unsafe_code)]

#[cfg(feature = "compiler")]
pub mod build;
pub mod codec;
pub mod dict;
#[cfg(feature = "compiler")]
pub mod generate;
pub mod session;
pub mod wire;
