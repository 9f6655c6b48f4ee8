// SPDX-License-Identifier: Apache-2.0
//! Generation of Rust code from a model.
//!
//! The output for a schema is one file, to be included as a module:
//!
//! * `types`: an `enum` for each enumeration, a bit set type for each set, and a decoder and an encoder for each
//!   composite. The names of inline types of a composite are prefixed with its name.
//! * A module for each message, with a decoder over `&[u8]` and an encoder over `&mut [u8]`, and the same for each of
//!   its groups.
//! * `Message`, an enum of all messages, and `header`, which reads the message header.
//!
//! Fields are methods. Groups and data must be read and written in order, so decoders and encoders have a type parameter
//! for their state: `CarDecoder<'_, at::Manufacturer>` has a method `manufacturer`, which returns the text and
//! `CarDecoder<'_, at::Model>`. Any other order does not compile. Names that are Rust keywords or methods of the
//! generated types get a trailing underscore; if several names become equal, all but the first get a number.

mod block;
mod code;
mod composite;
mod decoder;
mod encoder;
mod enumeration;
mod extra_members;
mod frames;
mod group;
mod message;
mod names;
mod number;
mod range;
mod root;
mod scope;
mod set;
mod size;
mod type_names;
mod value;

use block::{Plan, Plans};
use thiserror::Error;
use type_names::TypeNames;

use crate::model::Schema;
use crate::problem::{Problem, Problems};

/// Generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// File name.
    pub path: String,
    /// Content.
    pub text: String,
}

/// Reason why no code is generated for a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The code would be too large to compile.
    #[error(
        "{values} values, counting all values of the type of each field, exceed the limit of {most}; a group counts as 16 \
         besides its content, a message as 12, data as 4"
    )]
    TooLarge {
        /// Number of values.
        values: u64,
        /// Maximum number of values.
        most: u64,
    },
    /// The code would repeat names and descriptions too often.
    #[error(
        "{bytes} bytes of names and descriptions would be repeated in the code, such as the names of all enclosing groups \
         for each data element, which exceeds the limit of {most}; use shorter names or less nesting"
    )]
    TooMuchRepeated {
        /// Number of bytes.
        bytes: u64,
        /// Maximum number of bytes.
        most: u64,
    },
}

/// Generates Rust code for a schema: one file, named after the last part of its package.
///
/// # Errors
///
/// [`GenerateError`] when the code would be endless.
pub fn rust(schema: &Schema) -> Result<Vec<GeneratedFile>, GenerateError> {
    size::check(schema)?;
    let name = schema
        .package
        .rsplit('.')
        .find(|part| !part.is_empty())
        .unwrap_or("schema");
    Ok(vec![GeneratedFile {
        path: format!("{}.rs", names::module(name)),
        text: root::file(schema),
    }])
}

/// Reports the schema names whose Rust names conflict.
pub(crate) fn names(schema: &Schema, problems: &mut Problems) {
    if let Err(error) = size::check(schema) {
        problems.add(&schema.position, Problem::NotGenerated(error));
        return;
    }
    let types = TypeNames::of(schema, problems);
    message::all(schema, problems);
    for message in &schema.messages {
        Plan::message(message, &mut Plans::new(&types, problems));
    }
}
