//! Types: simple ones, composites, enumerations and sets.

use std::sync::Arc;

use super::index::Index;
use super::{Constant, Position, Primitive, Scalar};

/// Whether a value is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Required,
    /// It may be null.
    Optional,
    /// It is, and always the same, so it is not sent.
    Constant,
}

/// A type with a name.
#[derive(Debug, Clone)]
pub struct Type {
    /// Its name; that of the primitive for the types that need no definition.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// What it stands for in FIX, such as `Price`.
    pub semantic_type: Option<String>,
    /// The package of the `types` element that it was defined in, where that has one.
    pub package: Option<String>,
    /// Where a composite that holds it by reference should place it, unless the reference says otherwise.
    pub offset: Option<u32>,
    /// Whether it is one of the primitives that every schema knows without defining them.
    pub built_in: bool,
    /// Where it was written.
    pub position: Position,
    /// What kind of type it is.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Debug, Clone)]
pub enum TypeKind {
    /// A number, a character, or several of one.
    Simple(Simple),
    /// Several values, one after the other.
    Composite(Composite),
    /// One of several named values.
    Enum(Enum),
    /// Any of several named flags.
    Set(Set),
}

/// A primitive, or an array of a fixed number of them.
#[derive(Debug, Clone)]
pub struct Simple {
    /// What each element is.
    pub primitive: Primitive,
    /// How many elements there are; 1 for a plain value.
    pub length: u32,
    /// Whether a length was given, or two or more elements follow from the constant: then it is an array.
    pub is_array: bool,
    /// Whether it may be null, or is constant.
    pub presence: Presence,
    /// The encoding of characters, such as `UTF-8`; `US-ASCII` for `char` where none is given.
    pub character_encoding: Option<String>,
    /// The least value, its own or that of the primitive.
    pub min: Scalar,
    /// The greatest value, its own or that of the primitive.
    pub max: Scalar,
    /// What stands for "no value", its own or that of the primitive.
    pub null: Scalar,
    /// Which of the three the schema gives itself.
    pub explicit: ExplicitValues,
    /// The value of a constant.
    pub constant: Option<Constant>,
    /// Which value of an enumeration the constant is, where it is given so.
    pub value_ref: Option<ValueRef>,
}

impl Simple {
    /// One value of that primitive, with nothing said about it.
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
    /// Whether it is text of a fixed length: an array of characters, or of bytes in an encoding.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        let is_encoded =
            matches!(self.primitive, Primitive::Uint8) && self.character_encoding.is_some();
        self.is_array && (matches!(self.primitive, Primitive::Char) || is_encoded)
    }
}

/// Which values of a simple type were written, rather than taken from its primitive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExplicitValues {
    /// `minValue`.
    pub min: bool,
    /// `maxValue`.
    pub max: bool,
    /// `nullValue`.
    pub null: bool,
}

/// A value of an enumeration, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRef {
    /// The enumeration.
    pub enumeration: String,
    /// The name of one of its values.
    pub value: String,
}

/// Several values, one after the other.
#[derive(Debug, Clone)]
pub struct Composite {
    /// They, in the order in which they lie.
    pub members: Vec<Member>,
    /// How many bytes they take together, gaps counted.
    pub length: u32,
    /// How deep composites are nested in it: 1 when none are.
    pub depth: usize,
    /// How many values it holds, those of nested composites counted.
    pub leaves: u32,
    by_name: Index,
    lost: Lost,
    /// The first composite for `<data>` that it holds, however deep.
    data_inside: Option<String>,
}

/// The members of a composite that are not among the others because something is wrong with them, which has been told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// Whether one has none, so that it could be any.
    pub(crate) nameless: bool,
}

impl Composite {
    /// Members of so many bytes, of that depth, that hold so many values.
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

    /// Whether a member that is not there may have been written, and be broken. There is none such in a schema that can be
    /// used.
    pub(crate) fn may_have_lost(&self, name: &str) -> bool {
        self.lost.nameless || self.lost.names.iter().any(|lost| lost == name)
    }

    /// The member of that name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.by_name
            .find(&self.members, &name, |member| member.name.as_str())
    }

    /// The composite for `<data>` that it is, by that name, or that it holds.
    pub(crate) fn data_in<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.is_data() {
            return Some(name);
        }
        self.data_inside.as_deref()
    }

    /// Whether it is one for `<data>`, rather than for fields.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.member("length").is_some() && self.member("varData").is_some()
    }
}

/// A value in a composite.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it is for, where the reference itself says so.
    pub description: Option<String>,
    /// What it is.
    pub kind: Arc<Type>,
    /// Whether the type is another one of the schema, rather than one that was written here.
    pub is_ref: bool,
    /// Where it starts, from the start of the composite.
    pub offset: u32,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// Where it was written.
    pub position: Position,
}

/// One of several named values.
#[derive(Debug, Clone)]
pub struct Enum {
    /// How it is sent.
    pub encoding: Primitive,
    /// The name of the type that says how it is sent, where that is not a primitive.
    pub encoding_type: Option<String>,
    /// What stands for "no value".
    pub null: Scalar,
    /// Whether it may be null.
    pub presence: Presence,
    /// The values, in the order in which they were written.
    pub values: Vec<ValidValue>,
    by_name: Index,
    by_value: Index,
}

impl Enum {
    /// Values that are sent so.
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

    /// The value of that name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&ValidValue> {
        self.by_name
            .find(&self.values, &name, |value| value.name.as_str())
    }

    /// The value that is sent so.
    #[must_use]
    pub fn sent_as(&self, sent: i128) -> Option<&ValidValue> {
        self.by_value.find(&self.values, &sent, |value| value.value)
    }
}

/// A value of an enumeration.
#[derive(Debug, Clone)]
pub struct ValidValue {
    /// Its name.
    pub name: String,
    /// What is sent for it.
    pub value: i128,
    /// What it stands for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// Where it was written.
    pub position: Position,
}

/// Any of several named flags.
#[derive(Debug, Clone)]
pub struct Set {
    /// How it is sent.
    pub encoding: Primitive,
    /// The name of the type that says how it is sent, where that is not a primitive.
    pub encoding_type: Option<String>,
    /// The flags, in the order in which they were written.
    pub choices: Vec<Choice>,
}

/// A flag of a set.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Its bit, counted from the least significant one.
    pub bit: u8,
    /// What it stands for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// Where it was written.
    pub position: Position,
}

impl Type {
    /// How many bytes a value takes where it is sent; none where it is constant.
    #[must_use]
    pub fn encoded_length(&self) -> u32 {
        match &self.kind {
            TypeKind::Simple(simple) if simple.presence == Presence::Constant => 0,
            // Read with `MAX_LENGTH` in mind.
            TypeKind::Simple(simple) => simple.primitive.size().saturating_mul(simple.length),
            TypeKind::Composite(composite) => composite.length,
            TypeKind::Enum(kind) if kind.presence == Presence::Constant => 0,
            TypeKind::Enum(kind) => kind.encoding.size(),
            TypeKind::Set(set) => set.encoding.size(),
        }
    }

    /// Whether a value of it may be null, or is constant, as the type has it.
    #[must_use]
    pub fn presence(&self) -> Presence {
        match &self.kind {
            TypeKind::Simple(simple) => simple.presence,
            TypeKind::Enum(kind) => kind.presence,
            TypeKind::Composite(_) | TypeKind::Set(_) => Presence::Required,
        }
    }
}
