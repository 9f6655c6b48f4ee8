// SPDX-License-Identifier: Apache-2.0
//! Types: simple types, composites, enumerations and sets.

use std::sync::Arc;

use super::index::Index;
use super::{Constant, Position, Primitive, Scalar};

/// Presence of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always encoded.
    Required,
    /// Can be null.
    Optional,
    /// Always the same value, not encoded.
    Constant,
}

/// Named type.
#[derive(Debug, Clone)]
pub struct Type {
    /// Name; for built-in types the name of the primitive.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// FIX semantic type, such as `Price`.
    pub semantic_type: Option<String>,
    /// Package of the `types` element that contains the definition, if it has one.
    pub package: Option<String>,
    /// Default offset in composites that refer to this type.
    pub offset: Option<u32>,
    /// True for primitives, which need no definition in the schema.
    pub built_in: bool,
    /// Position in the schema source.
    pub position: Position,
    /// Kind.
    pub kind: TypeKind,
}

/// Kind of a type.
#[derive(Debug, Clone)]
pub enum TypeKind {
    /// Primitive or array of a primitive.
    Simple(Simple),
    /// Composite.
    Composite(Composite),
    /// Enumeration.
    Enum(Enum),
    /// Set.
    Set(Set),
}

/// Primitive or array of a fixed length.
#[derive(Debug, Clone)]
pub struct Simple {
    /// Element type.
    pub primitive: Primitive,
    /// Number of elements; 1 for a single value.
    pub length: u32,
    /// True if `length` is specified, or if a constant has two or more elements.
    pub is_array: bool,
    /// Presence.
    pub presence: Presence,
    /// Character encoding, such as `UTF-8`; the default for `char` is `US-ASCII`.
    pub character_encoding: Option<String>,
    /// Minimum value: its own, or that of the primitive.
    pub min: Scalar,
    /// Maximum value: its own, or that of the primitive.
    pub max: Scalar,
    /// Null value: its own, or that of the primitive.
    pub null: Scalar,
    /// The ones of these three values that the schema specifies.
    pub explicit: ExplicitValues,
    /// Constant value.
    pub constant: Option<Constant>,
    /// Enumeration value the constant refers to (`valueRef`), if any.
    pub value_ref: Option<ValueRef>,
}

impl Simple {
    /// Returns a single required value with the defaults of the primitive.
    #[must_use]
    pub fn plain(primitive: Primitive) -> Self {
        Self {
            primitive,
            length: 1,
            is_array: false,
            presence: Presence::Required,
            character_encoding: (primitive == Primitive::Char).then(|| "US-ASCII".to_owned()),
            min: primitive.min_value(),
            max: primitive.max_value(),
            null: primitive.null_value(),
            explicit: ExplicitValues::default(),
            constant: None,
            value_ref: None,
        }
    }
}

impl Simple {
    /// Returns true for text of a fixed length: an array of characters, or of bytes with a character encoding.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        let is_encoded =
            matches!(self.primitive, Primitive::Uint8) && self.character_encoding.is_some();
        self.is_array && (matches!(self.primitive, Primitive::Char) || is_encoded)
    }
}

/// Flags for the values of a simple type that the schema specifies; others are defaults of the primitive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplicitValues {
    /// `minValue`.
    pub min: bool,
    /// `maxValue`.
    pub max: bool,
    /// `nullValue`.
    pub null: bool,
}

/// Reference to an enumeration value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRef {
    /// Enumeration name.
    pub enumeration: String,
    /// Value name.
    pub value: String,
}

/// Composite type.
#[derive(Debug, Clone)]
pub struct Composite {
    /// Members, in layout order.
    pub members: Vec<Member>,
    /// Encoded length in bytes, including gaps.
    pub length: u32,
    /// Nesting depth; 1 without nested composites.
    pub depth: usize,
    /// Number of values, including those of nested composites.
    pub leaves: u32,
    by_name: Index,
    lost: Lost,
    /// Name of the first nested composite for `<data>`, at any depth.
    data_inside: Option<String>,
}

/// Members left out of a composite because they are invalid; the problems are already reported.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    /// Names.
    pub(crate) names: Vec<String>,
    /// True if an invalid member has no name, so that it could be any member.
    pub(crate) nameless: bool,
}

impl Composite {
    /// Builds a composite from its members, encoded length, nesting depth and number of values.
    pub(crate) fn new(
        members: Vec<Member>,
        lost: Lost,
        length: u32,
        depth: usize,
        leaves: u32,
    ) -> Self {
        let inner = members.iter().find_map(|member| match &member.kind.kind {
            TypeKind::Composite(composite) => composite.data_in(&member.kind.name),
            TypeKind::Simple(_) | TypeKind::Enum(_) | TypeKind::Set(_) => None,
        });
        Self {
            data_inside: inner.map(str::to_owned),
            by_name: Index::of(&members, |member| member.name.as_str()),
            members,
            length,
            depth,
            leaves,
            lost,
        }
    }

    /// Returns true if a missing member may be one that was left out as invalid. Always false in a valid schema.
    pub(crate) fn may_have_lost(&self, name: &str) -> bool {
        self.lost.nameless || self.lost.names.iter().any(|lost| lost == name)
    }

    /// Returns the member with this name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.by_name
            .find(&self.members, &name, |member| member.name.as_str())
    }

    /// Returns the name of the composite for `<data>`: this one, called `name`, or one nested in it.
    pub(crate) fn data_in<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.is_data() {
            return Some(name);
        }
        self.data_inside.as_deref()
    }

    /// Returns true for a composite for `<data>`.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.member("length").is_some() && self.member("varData").is_some()
    }
}

/// Member of a composite.
#[derive(Debug, Clone)]
pub struct Member {
    /// Name.
    pub name: String,
    /// Description given on the reference.
    pub description: Option<String>,
    /// Type.
    pub kind: Arc<Type>,
    /// True for a reference to a named type, false for an inline type.
    pub is_ref: bool,
    /// Offset from the start of the composite.
    pub offset: u32,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// Position in the schema source.
    pub position: Position,
}

/// Enumeration.
#[derive(Debug, Clone)]
pub struct Enum {
    /// Encoding type.
    pub encoding: Primitive,
    /// Name of the encoding type if it is not a primitive.
    pub encoding_type: Option<String>,
    /// Null value.
    pub null: Scalar,
    /// Presence.
    pub presence: Presence,
    /// Values, in source order.
    pub values: Vec<ValidValue>,
    by_name: Index,
    by_value: Index,
}

impl Enum {
    /// Builds an enumeration with this encoding.
    pub(crate) fn new(
        encoding: Primitive,
        encoding_type: Option<String>,
        null: Scalar,
        presence: Presence,
        values: Vec<ValidValue>,
    ) -> Self {
        Self {
            encoding,
            encoding_type,
            null,
            presence,
            by_name: Index::of(&values, |value| value.name.as_str()),
            by_value: Index::of(&values, |value| value.value),
            values,
        }
    }

    /// Returns the value with this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&ValidValue> {
        self.by_name
            .find(&self.values, &name, |value| value.name.as_str())
    }

    /// Returns the value with this encoding.
    #[must_use]
    pub fn sent_as(&self, sent: i128) -> Option<&ValidValue> {
        self.by_value.find(&self.values, &sent, |value| value.value)
    }
}

/// Value of an enumeration.
#[derive(Debug, Clone)]
pub struct ValidValue {
    /// Name.
    pub name: String,
    /// Encoded value.
    pub value: i128,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// Position in the schema source.
    pub position: Position,
}

/// Set of named bits.
#[derive(Debug, Clone)]
pub struct Set {
    /// Encoding type.
    pub encoding: Primitive,
    /// Name of the encoding type if it is not a primitive.
    pub encoding_type: Option<String>,
    /// Choices, in source order.
    pub choices: Vec<Choice>,
}

/// Choice of a set.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Name.
    pub name: String,
    /// Bit position, starting at the least significant bit.
    pub bit: u8,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// Position in the schema source.
    pub position: Position,
}

impl Type {
    /// Returns the encoded length in bytes; 0 for constants.
    #[must_use]
    pub fn encoded_length(&self) -> u32 {
        match &self.kind {
            TypeKind::Simple(simple) if simple.presence == Presence::Constant => 0,
            // Within `MAX_LENGTH`: this was checked when the type was read.
            TypeKind::Simple(simple) => simple.primitive.size().saturating_mul(simple.length),
            TypeKind::Composite(composite) => composite.length,
            TypeKind::Enum(kind) if kind.presence == Presence::Constant => 0,
            TypeKind::Enum(kind) => kind.encoding.size(),
            TypeKind::Set(set) => set.encoding.size(),
        }
    }

    /// Returns the presence of the type.
    #[must_use]
    pub fn presence(&self) -> Presence {
        match &self.kind {
            TypeKind::Simple(simple) => simple.presence,
            TypeKind::Enum(kind) => kind.presence,
            TypeKind::Composite(_) | TypeKind::Set(_) => Presence::Required,
        }
    }
}
