// SPDX-License-Identifier: Apache-2.0
//! Types by name, resolved on first use.

use std::collections::HashMap;
use std::sync::Arc;

use super::NAMELESS;
use super::attributes::{self, Attributes};
use super::frame::Frames;
use super::{composite, enumeration, simple};
use crate::model::{
    Constant, Enum, MAX_DEPTH, MAX_LENGTH, Position, Presence, Primitive, Scalar, Simple, Type,
    TypeKind, ValueRef,
};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// Maximum recursion depth of type resolution: nested composites, then a constant of the innermost one, its
/// enumeration, and the encoding type of that.
const MAX_READS: usize = MAX_DEPTH + 3;

/// Types of a schema.
pub(super) struct Types<'tree> {
    by_name: HashMap<&'tree str, Definition<'tree>>,
    in_order: Vec<&'tree str>,
    /// Types without a name or with a duplicate name.
    others: Vec<&'tree Element>,
    built_in: HashMap<Primitive, Arc<Type>>,
    /// Validated layouts of group dimensions and data.
    pub(super) frames: Frames,
    /// Current recursion depth.
    depth: usize,
    /// True if all files were read, so that an unknown type is certainly undefined.
    is_whole: bool,
}

struct Definition<'tree> {
    element: &'tree Element,
    package: Option<&'tree str>,
    state: State,
}

enum State {
    Unread,
    BeingRead,
    Read(Arc<Type>),
    Broken,
}

impl<'tree> Types<'tree> {
    /// Collects the types of a schema without resolving them; `is_whole` tells whether all files were read.
    pub(super) fn collect(root: &'tree Element, is_whole: bool, problems: &mut Problems) -> Self {
        let mut types = Self {
            by_name: HashMap::new(),
            in_order: Vec::new(),
            others: Vec::new(),
            built_in: Primitive::ALL
                .into_iter()
                .map(|primitive| (primitive, Arc::new(built_in(primitive))))
                .collect(),
            frames: Frames::default(),
            depth: 0,
            is_whole,
        };
        for group in root.children.iter().filter(|child| child.name == "types") {
            let package = Attributes::only(group, &[&["package"]], problems).value("package");
            for element in &group.children {
                match element.name.as_str() {
                    "type" | "composite" | "enum" | "set" => types.add(element, package, problems),
                    _ => attributes::unknown_element(element, group, problems),
                }
            }
        }
        types
    }

    fn add(
        &mut self,
        element: &'tree Element,
        package: Option<&'tree str>,
        problems: &mut Problems,
    ) {
        let attributes = Attributes { element };
        let Some(name) = attributes.name(problems) else {
            self.others.push(element);
            return;
        };
        if let Some(first) = self.by_name.get(name) {
            let problem = Problem::Duplicate {
                what: "type",
                name: name.to_owned(),
                first: first.element.position.clone(),
            };
            problems.add(&element.position, problem);
            self.others.push(element);
            return;
        }
        attributes.not_variable(problems);
        let definition = Definition {
            element,
            package: package.filter(|package| !package.is_empty()),
            state: State::Unread,
        };
        self.by_name.insert(name, definition);
        self.in_order.push(name);
    }

    /// Resolves the remaining types and returns all of them.
    pub(super) fn resolve_all(&mut self, problems: &mut Problems) -> Vec<Arc<Type>> {
        // These cannot be referenced, but their problems are reported.
        for element in std::mem::take(&mut self.others) {
            self.read(element, None, problems);
        }
        let names = self.in_order.clone();
        names
            .into_iter()
            .filter_map(|name| {
                let kind = self.defined(name, problems)?.ok()?;
                if Primitive::named(name).is_some_and(|primitive| !is_plain(&kind, primitive)) {
                    let problem = Problem::PrimitiveReplaced(name.to_owned());
                    problems.add(&kind.position, problem);
                }
                Some(kind)
            })
            .collect()
    }

    /// Returns the type with this name; reports a problem at `position` if there is none.
    pub(super) fn find(
        &mut self,
        name: &str,
        position: &Position,
        problems: &mut Problems,
    ) -> Option<Arc<Type>> {
        if let Some(found) = self.defined(name, problems) {
            return match found {
                Ok(kind) => Some(kind),
                Err(Some(problem)) => {
                    problems.add(position, problem);
                    None
                }
                Err(None) => None,
            };
        }
        if let Some(primitive) = Primitive::named(name) {
            return Some(self.built_in(primitive));
        }
        if self.is_whole {
            problems.add(position, Problem::NoSuchType(name.to_owned()));
        }
        None
    }

    /// Returns the built-in type of a primitive.
    pub(super) fn built_in(&self, primitive: Primitive) -> Arc<Type> {
        match self.built_in.get(&primitive) {
            Some(kind) => Arc::clone(kind),
            None => Arc::new(built_in(primitive)),
        }
    }

    /// Returns the type defined in the schema under this name. The inner error is for the referrer; it is `None` if the
    /// type itself is invalid, which is reported at the type.
    fn defined(
        &mut self,
        name: &str,
        problems: &mut Problems,
    ) -> Option<Result<Arc<Type>, Option<Problem>>> {
        let definition = self.by_name.get_mut(name)?;
        match &definition.state {
            State::Read(kind) => return Some(Ok(Arc::clone(kind))),
            State::Broken => return Some(Err(None)),
            State::BeingRead => return Some(Err(Some(Problem::TypeCycle(name.to_owned())))),
            State::Unread => {}
        }
        definition.state = State::BeingRead;
        let (element, package) = (definition.element, definition.package);
        let kind = self.read(element, package, problems).map(Arc::new);
        if let Some(definition) = self.by_name.get_mut(name) {
            definition.state = kind
                .as_ref()
                .map_or(State::Broken, |kind| State::Read(Arc::clone(kind)));
        }
        Some(kind.ok_or(None))
    }

    /// Reads a type in `types` or in a composite.
    pub(super) fn read(
        &mut self,
        element: &'tree Element,
        package: Option<&str>,
        problems: &mut Problems,
    ) -> Option<Type> {
        if self.depth > MAX_READS {
            problems.add(&element.position, Problem::TooDeep);
            return None;
        }
        self.depth += 1;
        let kind = self.read_one(element, package, problems);
        self.depth -= 1;
        kind
    }

    fn read_one(
        &mut self,
        element: &'tree Element,
        package: Option<&str>,
        problems: &mut Problems,
    ) -> Option<Type> {
        let attributes = Attributes::of(element, known(element), problems);
        let name = attributes.name(problems);
        let common = attributes.common(problems);
        let offset = attributes.number("offset", problems);
        if ["composite", "set"].contains(&element.name.as_str()) {
            never_constant(&attributes, problems);
        }
        let kind = match element.name.as_str() {
            "type" => TypeKind::Simple(simple::simple(element, &attributes, self, problems)?),
            "composite" => {
                TypeKind::Composite(composite::composite(element, package, self, problems)?)
            }
            "enum" => TypeKind::Enum(enumeration::enumeration(
                element,
                &attributes,
                self,
                problems,
            )?),
            _ => TypeKind::Set(enumeration::set(element, &attributes, self, problems)?),
        };
        let kind = Type {
            name: name.unwrap_or(NAMELESS).to_owned(),
            description: common.description,
            since: common.since,
            deprecated: common.deprecated,
            semantic_type: common.semantic_type,
            package: package.map(str::to_owned),
            offset,
            built_in: false,
            position: element.position.clone(),
            kind,
        };
        if kind.encoded_length() > MAX_LENGTH {
            problems.add(&element.position, Problem::TooLarge);
            return None;
        }
        Some(kind)
    }

    /// Returns the enumeration value that `valueRef` names, and its encoding.
    pub(super) fn referenced(
        &mut self,
        value_ref: &ValueRef,
        position: &Position,
        problems: &mut Problems,
    ) -> Option<(Primitive, Constant)> {
        let kind = self.find(&value_ref.enumeration, position, problems)?;
        let enumeration = as_enum(&kind, position, problems)?;
        let Some(value) = enumeration.value(&value_ref.value) else {
            let problem = Problem::NoSuchValue {
                enumeration: kind.name.clone(),
                value: value_ref.value.clone(),
            };
            problems.add(position, problem);
            return None;
        };
        let constant = Constant::Scalar(Scalar::Integer(value.value));
        Some((enumeration.encoding, constant))
    }
}

/// Reports a composite or a set with constant presence. It has no value, and the official tool treats its length as 0.
fn never_constant(attributes: &Attributes<'_>, problems: &mut Problems) {
    if attributes.presence(problems) == Some(Presence::Constant) {
        let what = if attributes.element.name == "set" {
            "a set"
        } else {
            "a composite"
        };
        attributes.at("presence", problems, Problem::NotConstant { what });
    }
}

/// Returns the attributes allowed on a type definition.
fn known(element: &Element) -> &'static [&'static str] {
    match element.name.as_str() {
        "type" => &[
            "semanticType",
            "offset",
            "presence",
            "primitiveType",
            "length",
            "variableLength",
            "characterEncoding",
            "valueRef",
            "minValue",
            "maxValue",
            "nullValue",
        ],
        "composite" => &["semanticType", "offset", "presence"],
        "enum" => &[
            "semanticType",
            "offset",
            "presence",
            "encodingType",
            "nullValue",
        ],
        _ => &["semanticType", "offset", "presence", "encodingType"],
    }
}

fn as_enum<'kind>(
    kind: &'kind Type,
    position: &Position,
    problems: &mut Problems,
) -> Option<&'kind Enum> {
    if let TypeKind::Enum(enumeration) = &kind.kind {
        return Some(enumeration);
    }
    problems.add(position, wrong_kind(kind, "an enumeration"));
    None
}

pub(super) fn wrong_kind(kind: &Type, expected: &'static str) -> Problem {
    Problem::WrongKind {
        name: kind.name.clone(),
        found: match &kind.kind {
            TypeKind::Simple(simple) if simple.is_array => "an array",
            TypeKind::Simple(_) => "a simple type",
            TypeKind::Composite(_) => "a composite",
            TypeKind::Enum(_) => "an enumeration",
            TypeKind::Set(_) => "a set",
        },
        expected,
    }
}

/// Returns true if a type equals the built-in type of the primitive.
fn is_plain(kind: &Type, primitive: Primitive) -> bool {
    matches!(&kind.kind, TypeKind::Simple(simple)
        if simple.primitive == primitive && !simple.is_array && simple.presence == Presence::Required)
}

fn built_in(primitive: Primitive) -> Type {
    Type {
        name: primitive.name().to_owned(),
        description: None,
        since: 0,
        deprecated: None,
        semantic_type: None,
        package: None,
        offset: None,
        built_in: true,
        position: Position::start_of(""),
        kind: TypeKind::Simple(Simple::plain(primitive)),
    }
}
