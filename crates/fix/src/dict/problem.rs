// SPDX-License-Identifier: Apache-2.0
//! Errors of a dictionary, with positions.

use std::fmt;

use thiserror::Error;

/// Defect of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The text is not XML.
    #[error("not well-formed XML: {0}")]
    Xml(String),
    /// A limit against inputs that are expensive to parse.
    #[error("{0}")]
    Limit(&'static str),
    /// The root element is not one of a dictionary.
    #[error("the root element is <{0}>; expected <fix> (QuickFIX) or <repository> (Orchestra)")]
    Root(String),
    /// A required attribute is missing.
    #[error("<{element}> has no attribute {attribute}")]
    Attribute {
        /// Name of the element.
        element: String,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// An attribute has an invalid value.
    #[error("{attribute}={value:?} is invalid: expected {expected}")]
    Value {
        /// Name of the attribute.
        attribute: &'static str,
        /// Value.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// A name or id is used, but not defined.
    #[error("{kind} {name:?} is not defined")]
    Undefined {
        /// Kind of the definition.
        kind: &'static str,
        /// Name or id.
        name: String,
    },
    /// A name, tag or type is defined twice.
    #[error("{kind} {name:?} is defined twice")]
    Twice {
        /// Kind of the definition.
        kind: &'static str,
        /// Name, tag or type.
        name: String,
    },
    /// A component contains itself.
    #[error("component or group {0:?} contains itself")]
    Cycle(String),
    /// Components and groups are nested too deeply, or a message has too many members.
    #[error(
        "{0:?} has more than 10,000 members, all have more than 4,000,000, or it is nested more than 8 groups or 32 components deep"
    )]
    TooLarge(String),
    /// A tag occurs twice in one message, header, trailer or group entry.
    #[error("tag {tag} occurs twice in {scope:?}")]
    Duplicate {
        /// Tag.
        tag: u32,
        /// Name of the message or group.
        scope: String,
    },
    /// A group without members.
    #[error("group {0:?} has no members")]
    EmptyGroup(String),
    /// A data field whose length field is unknown.
    #[error("data field {name:?} ({tag}) has no length field: expected {name}Len or {name}Length")]
    NoLength {
        /// Name.
        name: String,
        /// Tag.
        tag: u32,
    },
    /// A value of a set does not have the form of the field's data type.
    #[error("value {value:?} of field {field:?} is not of type {kind}")]
    EnumType {
        /// Name of the field.
        field: String,
        /// Value.
        value: String,
        /// Data type.
        kind: &'static str,
    },
}

/// Problem with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Problem.
    pub problem: Problem,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            problem,
        } = self;
        write!(formatter, "{file}:{line}:{column}: {problem}")
    }
}

/// All problems of a dictionary that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Problems in the order of the file.
    pub problems: Vec<Diagnostic>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}
