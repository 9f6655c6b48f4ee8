// SPDX-License-Identifier: Apache-2.0
//! Dictionaries: the fields, groups and messages of a FIX version.
//!
//! [`quickfix`] and [`orchestra`] read a dictionary from XML; [`read_file`] tells the two apart. [`Validator`] checks
//! messages at run time, [`describe`] prints a dictionary, [`diff`] compares two, [`decode`] prints messages.

mod block;
#[cfg(feature = "compiler")]
mod build;
pub mod decode;
pub mod describe;
pub mod diff;
mod kind;
mod model;
#[cfg(feature = "compiler")]
pub mod orchestra;
mod problem;
#[cfg(feature = "compiler")]
pub mod quickfix;
#[cfg(feature = "compiler")]
mod read;
mod reject;
mod validate;
#[cfg(feature = "compiler")]
mod xml;

pub use block::{Block, Member};
pub use kind::Kind;
pub use model::{Dictionary, FieldDef, MessageDef, Protocol, ValueDef, Version};
pub use problem::{Diagnostic, Problem, Rejected};
#[cfg(feature = "compiler")]
pub use read::{read_file, read_text};
pub use reject::{Fault, RejectReason};
pub use validate::{Checks, Tags, Validation, Validator};
