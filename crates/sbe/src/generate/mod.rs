//! From a model to Rust.
//!
//! What comes out for a schema is one file, to be used as a module:
//!
//! * `types`: an `enum` for each enumeration, a set of flags for each set, and for each composite a decoder and an
//!   encoder. Types that are written inside of a composite bear its name in front of their own.
//! * a module for each message, with a decoder over `&[u8]` and an encoder over `&mut [u8]`, and the same for each of
//!   its groups.
//! * `Message`, which is any of them, and `header`, which says which one it is.
//!
//! Fields are methods. What follows the fields, groups and data, has to be read and written in its order, so decoders
//! and encoders have a type parameter that says where they stand: `CarDecoder<'_, at::Manufacturer>` has a method
//! `manufacturer`, and that gives the text and `CarDecoder<'_, at::Model>`. In any other order it does not compile.
//! Names that are words of Rust, or of this interface, get an underscore at their end; of names that become the same, all
//! but the first get a number.

mod block;
mod code;
mod composite;
mod decoder;
mod encoder;
mod enumeration;
mod frames;
mod group;
mod message;
mod names;
mod number;
mod own;
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

/// A file that was generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its name.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// Why there is no Rust for a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// It would be more than anybody could compile.
    #[error(
        "{values} values, each field with all that its type holds, are more than the {most} that code is made for; a group \
         counts as 16 besides what is in it, a message as 12, data as 4"
    )]
    TooLarge {
        /// How many there are.
        values: u64,
        /// How many there may be.
        most: u64,
    },
    /// Code would say the same names and descriptions again and again.
    #[error(
        "{bytes} bytes of names and descriptions to repeat for each thing that has to do with them, such as the names of all \
         groups around each data, are more than the {most} that code is made for; shorter names, or less that is nested, help"
    )]
    TooMuchRepeated {
        /// How many bytes there are.
        bytes: u64,
        /// How many there may be.
        most: u64,
    },
}

/// Rust for a schema: one file, called after the last part of its package.
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

/// Tells which names of a schema cannot be those of Rust, because others would have them too.
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
