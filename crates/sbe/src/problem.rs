// SPDX-License-Identifier: Apache-2.0
//! Problems in a schema.

use std::collections::HashSet;
use std::fmt;

use thiserror::Error;

use crate::generate::GenerateError;
use crate::model::{MAX_CHOICES, MAX_DEPTH, MAX_LEAVES, MAX_LENGTH, Position, Primitive};

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The schema cannot be used.
    Error,
    /// The schema is usable but may not do what its author intends.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Problem and its position. Displayed in compiler style: `file:line:column: error: message`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Position of the problem.
    pub position: Position,
    /// The problem.
    pub problem: Problem,
}

impl Diagnostic {
    /// Returns the severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.problem.severity()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {}: {}",
            self.position,
            self.severity(),
            self.problem
        )
    }
}

/// Maximum number of errors, and of warnings, reported for one schema.
const MAX_REPORTED: usize = 1_000;

/// Largest id the standard allows for messages and their elements.
pub(crate) const GREATEST_ID: u16 = u16::MAX;

/// Problems found so far. Errors and warnings are bounded separately, so warnings cannot displace errors.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    errors: Bounded,
    warnings: Bounded,
}

/// Problems of one severity.
#[derive(Debug, Default)]
struct Bounded {
    found: Vec<Diagnostic>,
    seen: HashSet<Diagnostic>,
    /// Position of the first problem that is not reported.
    cut: Option<Position>,
}

impl Problems {
    pub(crate) fn add(&mut self, position: &Position, problem: Problem) {
        let list = match problem.severity() {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        list.add(Diagnostic {
            position: position.clone(),
            problem,
        });
    }

    pub(crate) fn any_errors(&self) -> bool {
        !self.errors.found.is_empty()
    }

    /// Returns all problems ordered by file and position, followed by a note for each severity that was truncated.
    pub(crate) fn in_order(self) -> Vec<Diagnostic> {
        let cut = [
            self.errors.more(Problem::MoreErrors(MAX_REPORTED)),
            self.warnings.more(Problem::MoreWarnings(MAX_REPORTED)),
        ];
        let mut found = self.errors.found;
        found.extend(self.warnings.found);
        found.sort_by(|one, two| one.position.cmp(&two.position));
        found.extend(cut.into_iter().flatten());
        found
    }
}

impl Bounded {
    fn add(&mut self, diagnostic: Diagnostic) {
        // The same problem of a type is found again for each element that uses the type.
        if self.cut.is_some() || self.seen.contains(&diagnostic) {
            return;
        }
        if self.found.len() < MAX_REPORTED {
            self.seen.insert(diagnostic.clone());
            self.found.push(diagnostic);
        } else {
            self.cut = Some(diagnostic.position);
        }
    }

    fn more(&self, problem: Problem) -> Option<Diagnostic> {
        let position = self.cut.clone()?;
        Some(Diagnostic { position, problem })
    }
}

/// Problem in a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say it")]
pub enum Problem {
    // Truncation.
    #[error("further errors are not reported; the limit is {0}")]
    MoreErrors(usize),
    #[error("further warnings are not reported; the limit is {0}")]
    MoreWarnings(usize),

    // Files and XML.
    #[error("cannot read {name}: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("the file name is not valid Unicode")]
    NameNotUnicode,
    #[error("not UTF-8, UTF-16 with a byte order mark, or declared ISO-8859-1")]
    NotText,
    #[error("encoding {0} is unknown; non-ASCII characters may be misread")]
    UnknownEncoding(String),
    #[error("{0}")]
    Xml(String),
    #[error("<{0}> is never closed")]
    Unclosed(String),
    #[error("{name} includes itself through {by}")]
    IncludeCycle { name: String, by: String },
    #[error("more than {0} files are included")]
    TooManyFiles(usize),
    #[error("the files exceed {0} bytes in total")]
    TooLong(usize),
    #[error("entity declarations are not allowed in a schema")]
    Entities,
    #[error("more than {0} attributes")]
    TooManyAttributes(usize),
    #[error("more than {0} namespace declarations")]
    TooManyNamespaces(usize),
    #[error("{attribute} is longer than {most} bytes")]
    LongValue { attribute: String, most: usize },
    #[error("elements are nested more than {0} deep")]
    NestedElements(usize),
    #[error(
        "xi:include with {what}=\"{value}\" is not supported; only whole XML files are included"
    )]
    Include { what: &'static str, value: String },

    // Elements and attributes.
    #[error("expected <{expected}>, found <{found}>")]
    WrongRoot {
        expected: &'static str,
        found: String,
    },
    #[error("<{element}> has no meaning in <{within}> and is ignored")]
    UnknownElement { element: String, within: String },
    #[error("<{element}> belongs to {namespace} and is ignored")]
    Foreign { element: String, namespace: String },
    #[error("<{0}> cannot be in a composite")]
    NotInComposite(String),
    #[error("attribute {attribute} has no meaning on <{element}> and is ignored")]
    UnknownAttribute { element: String, attribute: String },
    #[error("<{element}> needs the attribute {attribute}")]
    MissingAttribute {
        element: String,
        attribute: &'static str,
    },
    #[error("{attribute}=\"{value}\" is not {expected}")]
    BadValue {
        attribute: String,
        value: String,
        expected: String,
    },
    #[error(
        "\"{0}\" is not a valid name: at most 64 letters, digits and _, not starting with a digit"
    )]
    BadName(String),
    #[error("<{element}> comes after <{after}>: fields come first, then groups, then data")]
    WrongOrder {
        element: &'static str,
        after: &'static str,
    },
    #[error("there are no messages")]
    NoMessages,
    #[error("<messageSchema> has no package, which the standard and the official tool require")]
    NoPackage,
    #[error("<messageSchema> has no version, which the standard requires; 0 is assumed")]
    NoVersion,
    #[error("<types> comes after <message>; the standard requires types first")]
    TypesBehindMessages,
    #[error("<{0}> is empty, which the standard does not allow")]
    Empty(String),
    #[error("text has no meaning in <{0}> and is ignored")]
    StrayText(String),
    #[error("id {id} of <{element}> is greater than {GREATEST_ID}, the maximum of the standard")]
    GreatId { element: String, id: u64 },

    // Duplicate names and numbers.
    #[error("{what} {name} is already defined at {first}")]
    Duplicate {
        what: &'static str,
        name: String,
        first: Position,
    },
    #[error("type {0} redefines the primitive type of that name")]
    PrimitiveReplaced(String),
    #[error("{name} is the same bit as {other}")]
    SameBit { name: String, other: String },

    #[error("{0}")]
    Renamed(Box<Renamed>),
    #[error("no code is generated: {0}")]
    NotGenerated(GenerateError),

    // References.
    #[error("unknown type {0}")]
    NoSuchType(String),
    #[error("type {name} is {found}, but {expected} is required")]
    WrongKind {
        name: String,
        found: &'static str,
        expected: &'static str,
    },
    #[error("type {0} contains itself")]
    TypeCycle(String),
    #[error("valueRef=\"{0}\" is not of the form enumeration.value")]
    BadValueRef(String),
    #[error("enumeration {enumeration} has no value {value}")]
    NoSuchValue { enumeration: String, value: String },
    #[error(
        "valueRef names a value of {enumeration}, which is encoded as {found}, but {name} is {expected}"
    )]
    ValueRefMismatch {
        enumeration: String,
        found: Primitive,
        name: String,
        expected: String,
    },
    #[error("valueRef is given, but presence is not constant")]
    ValueRefNotConstant,
    #[error("constant without a value")]
    NoConstant,
    #[error("{what} cannot be constant")]
    NotConstant { what: &'static str },
    #[error("the type is constant, so the presence of the field is ignored")]
    TypeIsConstant,
    #[error("the constant {value} is outside its range, {min} to {max}")]
    ConstantOutside {
        value: String,
        min: String,
        max: String,
    },
    #[error("the constant is a single value, but length is {length}; the length is ignored")]
    ConstantOfMany { length: u32 },
    #[error("the constant has {found} characters, but length is {length}")]
    ConstantTooLong { found: usize, length: u32 },
    #[error("a constant of more than {0} characters")]
    LongConstant(u32),
    #[error("semanticType is {field}, but the type has semanticType {kind}")]
    SemanticTypes { field: String, kind: String },

    // Values.
    #[error(
        "characterEncoding {0} is unknown: texts are shown as bytes, and official codecs may fail"
    )]
    UnknownCharset(String),
    #[error("nullValue is given, but presence is not optional")]
    NullNotOptional,
    #[error("minValue {min} is greater than maxValue {max}")]
    MinAboveMax { min: String, max: String },
    #[error("{name} has the value {value}, which is the null value")]
    ValueIsNull { name: String, value: i128 },
    #[error("{name} has the value {value}, outside the range {min} to {max}")]
    ValueOutside {
        name: String,
        value: i128,
        min: String,
        max: String,
    },
    #[error("{name} is bit {bit}, but {encoding} has {bits} bits")]
    NoSuchBit {
        name: String,
        bit: u32,
        encoding: Primitive,
        bits: u32,
    },
    #[error("the standard requires {expected} for {what}, not {found}")]
    UnusualEncoding {
        what: &'static str,
        found: Primitive,
        expected: &'static str,
    },
    #[error(
        "an enumeration encoded as {0}: the official tool rejects it unless encodingType names a type defined in the \
         schema"
    )]
    WideEnumeration(Primitive),
    #[error("{what} cannot be encoded as {found}, only as {expected}")]
    WrongEncoding {
        what: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("length 0: nothing is encoded")]
    NoLength,

    // Layout.
    #[error("offset {offset} of {name} overlaps the preceding elements, which end at {end}")]
    Overlap { name: String, offset: u32, end: u32 },
    #[error("offset 0 of {name} is ignored because {end} bytes precede it")]
    OffsetZero { name: String, end: u32 },
    #[error("blockLength {given} is less than the {needed} bytes of the fields")]
    BlockTooShort { given: u32, needed: u32 },
    #[error("longer than {MAX_LENGTH} bytes")]
    TooLarge,
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("more than {MAX_LEAVES} values in one composite")]
    TooManyLeaves,
    #[error("more than {MAX_CHOICES} choices in one set")]
    TooManyChoices,
    #[error("composite {composite} needs a member {member} to be used as {purpose}")]
    FrameMember {
        composite: String,
        member: &'static str,
        purpose: &'static str,
    },
    #[error(
        "{member} of {composite} has no maxValue; the official tool rejects {primitive} without a maxValue of at most \
         2147483647"
    )]
    NoMaxValue {
        composite: String,
        member: &'static str,
        primitive: Primitive,
    },
    #[error(
        "maxValue {max} of {member} of {composite} is the null value; the official tool rejects more than {greatest}"
    )]
    MaxValueIsNull {
        composite: String,
        member: &'static str,
        max: i128,
        greatest: i128,
    },
    #[error("{what} {value} does not fit into {member} of {composite}, whose maximum is {max}")]
    DoesNotFit {
        what: &'static str,
        value: u64,
        member: &'static str,
        composite: String,
        max: u64,
    },
    #[error("{what} {value} does not match {member} of {composite}, which is constant {constant}")]
    NotTheConstant {
        what: &'static str,
        value: u64,
        member: &'static str,
        composite: String,
        constant: u64,
    },
    #[error(
        "schemaId of {composite} is constant {constant}, which differs from the id {id} of the schema; messages carry neither, \
         and readers take {id}; the bytes are those of the official tool"
    )]
    OtherSchemaId {
        id: u64,
        composite: String,
        constant: u64,
    },
    #[error(
        "composite {composite} contains varData and is meant for <data>; the field has the fixed layout of its type, {length} bytes, \
         with no data behind it; if {composite} is the type of <data>, too, the official tool places the members behind it elsewhere, so \
         that the bytes differ"
    )]
    VarDataInField { composite: String, length: u32 },
    #[error("{what} after varData in composite {composite} has no effect")]
    BehindVarData { what: String, composite: String },
    #[error("length follows varData in composite {0}; it must precede it")]
    LengthBehindData(String),
    #[error(
        "variableLength: only varData of a <data> composite has variable length, and it needs no variableLength"
    )]
    VariableLength,
    #[error("<data> cannot be constant")]
    DataConstant,
    #[error("presence=\"optional\" has no effect on <data>: absent data has length 0")]
    DataOptional,

    // Versions.
    #[error("sinceVersion {since} is beyond the schema's version {version}")]
    SinceBeyond { since: u32, version: u32 },
    #[error("deprecated in version {deprecated}, beyond the schema's version {version}")]
    DeprecatedBeyond { deprecated: u32, version: u32 },
    #[error("deprecated in version {deprecated}, before it was introduced in {since}")]
    DeprecatedBefore { deprecated: u32, since: u32 },
    #[error(
        "{name} was introduced in version {since}, but follows {before} of version {before_since}: older readers confuse \
         them"
    )]
    VersionOrder {
        name: String,
        since: u32,
        before: String,
        before_since: u32,
    },
    #[error(
        "{name} was added in version {since} to composite {composite} of version {composite_since}: composites cannot be \
         extended, and blocks of older messages are too short for it; add a separate field instead"
    )]
    CompositeExtended {
        name: String,
        since: u32,
        composite: String,
        composite_since: u32,
    },
}

impl Problem {
    /// Returns the severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::MoreWarnings(_)
            | Self::UnknownElement { .. }
            | Self::UnknownAttribute { .. }
            | Self::Foreign { .. }
            | Self::UnknownEncoding(_)
            | Self::UnknownCharset(_)
            | Self::BadName(_)
            | Self::NoMessages
            | Self::NoPackage
            | Self::NoVersion
            | Self::TypesBehindMessages
            | Self::Empty(_)
            | Self::StrayText(_)
            | Self::GreatId { .. }
            | Self::ConstantOutside { .. }
            | Self::ConstantOfMany { .. }
            | Self::PrimitiveReplaced(_)
            | Self::SameBit { .. }
            | Self::Renamed(_)
            | Self::NotGenerated(_)
            | Self::ValueIsNull { .. }
            | Self::ValueRefNotConstant
            | Self::TypeIsConstant
            | Self::SemanticTypes { .. }
            | Self::NullNotOptional
            | Self::UnusualEncoding { .. }
            | Self::NoLength
            | Self::OffsetZero { .. }
            | Self::NoMaxValue { .. }
            | Self::MaxValueIsNull { .. }
            | Self::WideEnumeration(_)
            | Self::OtherSchemaId { .. }
            | Self::VarDataInField { .. }
            | Self::BehindVarData { .. }
            | Self::DataOptional
            | Self::DeprecatedBeyond { .. }
            | Self::DeprecatedBefore { .. }
            | Self::VersionOrder { .. }
            | Self::CompositeExtended { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// An element whose Rust name conflicts with the Rust name of another element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Renamed {
    /// Name in the schema.
    pub name: String,
    /// Rust name that both elements map to.
    pub wanted: String,
    /// Rust name that is used instead.
    pub given: String,
    /// Schema name of the element that keeps the Rust name.
    pub first: String,
    /// Position of that element.
    pub first_position: Position,
}

impl fmt::Display for Renamed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            wanted,
            given,
            first,
            first_position,
        } = self;
        write!(
            out,
            "in Rust, {name} would have the name {wanted} of {first} (at {first_position}), and gets {given}"
        )
    }
}
