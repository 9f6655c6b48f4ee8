// SPDX-License-Identifier: Apache-2.0
//! Transport security between drivers (docs/spec/transport-security.md): what crosses the network is sealed for drivers that
//! trust each other's keys, and nothing else is taken.
//!
//! All parts are pure: no I/O, no clock, no thread, no generator of random bytes of their own.
//!
//! * [`frame`]: layouts and strict parsing.
//! * [`provider`]: cryptographic primitives of AWS-LC or Graviola behind one trait.
//! * [`mod@derive`]: derivations of keys, identifiers and authenticators.
//! * [`identity`], [`pattern`], [`trust`]: texts of keys and of the trust file.
//! * [`handshake`], [`link`]: what makes and protects the link of two drivers.
//! * [`keeper`]: links, grants, rotation and limits as a state machine.
//! * [`seal`], [`window`], [`bounds`]: protection of datagrams, on the hot path.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod derive;
pub mod frame;
pub mod handshake;
mod hkdf;
pub mod identity;
pub mod keeper;
pub mod limits;
pub mod link;
pub mod pattern;
pub mod provider;
pub mod seal;
mod secret;
#[cfg(test)]
mod test;
pub mod trust;
pub mod window;

pub use secret::Secret;

/// Version of the protocol, in handshakes and announcements.
pub const VERSION: u16 = 1;
