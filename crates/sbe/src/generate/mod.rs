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
mod range;
mod root;
mod set;
mod value;

use std::fmt;

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

/// Why there is no Rust for a schema: every pair of names that collide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateError {
    /// At least one.
    pub collisions: Vec<Collision>,
}

impl fmt::Display for GenerateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, collision) in self.collisions.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write!(out, "{collision}")?;
        }
        Ok(())
    }
}

impl std::error::Error for GenerateError {}

/// Rust for a schema: one file, called after the last part of its package.
///
/// # Errors
///
/// [`GenerateError`] when two names of the schema become the same in Rust.
pub fn rust(schema: &Schema) -> Result<Vec<GeneratedFile>, GenerateError> {
    let (text, collisions) = root::file(schema);
    if !collisions.is_empty() {
        return Err(GenerateError { collisions });
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
