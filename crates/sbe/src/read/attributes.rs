// SPDX-License-Identifier: Apache-2.0
//! Attributes of elements, with their validation.

use crate::model::{Presence, ValueRef};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// Attributes common to all named elements.
const OF_ALL: &[&str] = &["name", "description", "sinceVersion", "deprecated"];
/// Maximum length of a name by the standard.
const LONGEST_NAME: usize = 64;

/// Attributes of one element.
pub(super) struct Attributes<'tree> {
    pub(super) element: &'tree Element,
}

/// Values of the common attributes.
pub(super) struct Common {
    pub(super) description: Option<String>,
    pub(super) since: u32,
    pub(super) deprecated: Option<u32>,
    pub(super) semantic_type: Option<String>,
}

impl<'tree> Attributes<'tree> {
    /// Returns the attributes of a named element, and reports those that are neither common nor in `specific`.
    pub(super) fn of(element: &'tree Element, specific: &[&str], problems: &mut Problems) -> Self {
        Self::only(element, &[OF_ALL, specific], problems)
    }

    /// Returns the attributes of the element, and reports unknown ones.
    pub(super) fn only(
        element: &'tree Element,
        known: &[&[&str]],
        problems: &mut Problems,
    ) -> Self {
        for attribute in &element.attributes {
            let is_known = |known: &&[&str]| known.contains(&attribute.name.as_str());
            if !known.iter().any(is_known) {
                let problem = Problem::UnknownAttribute {
                    element: element.name.clone(),
                    attribute: attribute.name.clone(),
                };
                problems.add(&attribute.position, problem);
            }
        }
        Self { element }
    }

    pub(super) fn value(&self, name: &str) -> Option<&'tree str> {
        self.element
            .attribute(name)
            .map(|attribute| attribute.value.trim())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(str::to_owned)
    }

    /// Returns a required, non-empty attribute.
    pub(super) fn required(
        &self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<&'tree str> {
        match self.value(name) {
            None => {
                let problem = Problem::MissingAttribute {
                    element: self.element.name.clone(),
                    attribute: name,
                };
                problems.add(&self.element.position, problem);
                None
            }
            Some("") => {
                self.bad(name, "a text", problems);
                None
            }
            given => given,
        }
    }

    /// Returns the required name of the element.
    pub(super) fn name(&self, problems: &mut Problems) -> Option<&'tree str> {
        let name = self.required("name", problems)?;
        let first_is_right = name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
        let all_are_right = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !first_is_right || !all_are_right || name.len() > LONGEST_NAME {
            self.at("name", problems, Problem::BadName(name.to_owned()));
        }
        Some(name)
    }

    /// Returns a required number.
    pub(super) fn required_number(
        &self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<u32> {
        self.required(name, problems)?;
        self.number(name, problems)
    }

    /// Returns an optional number.
    pub(super) fn number(&self, name: &'static str, problems: &mut Problems) -> Option<u32> {
        let number = self.value(name)?.parse().ok();
        if number.is_none() {
            self.bad(name, "a whole number from 0 to 4294967295", problems);
        }
        number
    }

    pub(super) fn presence(&self, problems: &mut Problems) -> Option<Presence> {
        match self.value("presence")? {
            "required" => Some(Presence::Required),
            "optional" => Some(Presence::Optional),
            "constant" => Some(Presence::Constant),
            _ => {
                self.bad("presence", "required, optional or constant", problems);
                None
            }
        }
    }

    pub(super) fn value_ref(&self, problems: &mut Problems) -> Option<ValueRef> {
        let text = self.value("valueRef")?;
        match text.split_once('.') {
            Some((enumeration, value)) if !enumeration.is_empty() && !value.is_empty() => {
                Some(ValueRef {
                    enumeration: enumeration.to_owned(),
                    value: value.to_owned(),
                })
            }
            _ => {
                self.at("valueRef", problems, Problem::BadValueRef(text.to_owned()));
                None
            }
        }
    }

    pub(super) fn common(&self, problems: &mut Problems) -> Common {
        Common {
            description: self.text("description").filter(|text| !text.is_empty()),
            since: self.number("sinceVersion", problems).unwrap_or(0),
            // As in the official tool, 0 means never deprecated.
            deprecated: self
                .number("deprecated", problems)
                .filter(|version| *version > 0),
            semantic_type: self.text("semanticType").filter(|text| !text.is_empty()),
        }
    }

    /// Reports a type of variable length. The official tool accepts it but cannot compute the offsets of the elements
    /// after it.
    pub(super) fn not_variable(&self, problems: &mut Problems) {
        // As in the official tool, any other value means "false".
        let says_so = |value: &str| value.eq_ignore_ascii_case("true");
        if self.value("variableLength").is_some_and(says_so) {
            self.at("variableLength", problems, Problem::VariableLength);
        }
    }

    /// Reports an attribute with an invalid value.
    pub(super) fn bad(&self, name: &str, expected: &str, problems: &mut Problems) {
        let problem = Problem::BadValue {
            attribute: name.to_owned(),
            value: self.value(name).unwrap_or_default().to_owned(),
            expected: expected.to_owned(),
        };
        self.at(name, problems, problem);
    }

    /// Reports a problem at the position of the attribute.
    pub(super) fn at(&self, name: &str, problems: &mut Problems, problem: Problem) {
        let attribute = self.element.attribute(name);
        let position = attribute.map_or(&self.element.position, |attribute| &attribute.position);
        problems.add(position, problem);
    }
}

pub(super) fn unknown_element(element: &Element, within: &Element, problems: &mut Problems) {
    let problem = Problem::UnknownElement {
        element: element.name.clone(),
        within: within.name.clone(),
    };
    problems.add(&element.position, problem);
}
