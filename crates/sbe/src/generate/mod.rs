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
//! Names that are words of Rust, or of this interface, get an underscore at their end.

mod block;
mod code;
mod composite;
mod decoder;
mod encoder;
mod enumeration;
mod group;
mod message;
mod names;
mod number;
mod own;
mod range;
mod root;
mod set;
mod size;
mod value;

use std::fmt;

use thiserror::Error;

use crate::model::{Position, Schema};

/// A file that was generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its name.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// Two things of a schema that would have the same name in Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// That name.
    pub identifier: String,
    /// What has it already, by its name in the schema.
    pub first: String,
    /// Where that was written.
    pub first_position: Position,
    /// What would have it too.
    pub second: String,
    /// Where that was written.
    pub position: Position,
}

impl fmt::Display for Collision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} would be called {} in Rust, as {} is already (at {})",
            self.position, self.second, self.identifier, self.first, self.first_position
        )
    }
}

/// Why there is no Rust for a schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Names become the same in Rust: every pair of those, at least one.
    #[error("{}", told(_0))]
    Collisions(Vec<Collision>),
    /// It would be more than anybody could compile.
    #[error(
        "{values} values, each field with all that its type holds, are more than the {most} that code is made for"
    )]
    TooLarge {
        /// How many there are.
        values: u64,
        /// How many there may be.
        most: u64,
    },
}

fn told(collisions: &[Collision]) -> String {
    let lines: Vec<String> = collisions.iter().map(Collision::to_string).collect();
    lines.join("\n")
}

/// Rust for a schema: one file, called after the last part of its package.
///
/// # Errors
///
/// [`GenerateError`] when two names of the schema become the same in Rust, or the code would be endless.
pub fn rust(schema: &Schema) -> Result<Vec<GeneratedFile>, GenerateError> {
    let (values, most) = (size::of(schema), size::MOST);
    if values > most {
        return Err(GenerateError::TooLarge { values, most });
    }
    let (text, collisions) = root::file(schema);
    if !collisions.is_empty() {
        return Err(GenerateError::Collisions(collisions));
    }
    let name = schema
        .package
        .rsplit('.')
        .find(|part| !part.is_empty())
        .unwrap_or("schema");
    Ok(vec![GeneratedFile {
        path: format!("{}.rs", names::module(name)),
        text,
    }])
}
