// SPDX-License-Identifier: Apache-2.0
//! Rust names of types and their parts.

use std::collections::HashMap;

use super::frames;
use super::names;
use super::scope::{Scope, Thing};
use crate::model::{Composite, Schema, Type, TypeKind};
use crate::problem::Problems;

/// Rust names of all types that code is generated for.
#[derive(Debug)]
pub(super) struct TypeNames<'a> {
    top: HashMap<&'a str, String>,
    /// Names of inline types, by the Rust name of the composite and the schema name of the type.
    inside: HashMap<String, HashMap<&'a str, String>>,
    /// Names of values, choices and members, by the Rust name of the type and their schema name.
    parts: HashMap<String, HashMap<&'a str, String>>,
}

impl<'a> TypeNames<'a> {
    pub(super) fn of(schema: &'a Schema, problems: &mut Problems) -> Self {
        let mut all = Self {
            top: HashMap::new(),
            inside: HashMap::new(),
            parts: HashMap::new(),
        };
        let mut scope = Scope::of_types();
        let shown = frames::shown(schema);
        // Types with names of their own take precedence over inline types, whose names are composed.
        for kind in &shown {
            let wanted = match &kind.kind {
                TypeKind::Composite(_) => names::part(&kind.name),
                _ => names::kind(&kind.name),
            };
            if let Some(name) = take(&mut scope, kind, wanted, problems) {
                all.top.insert(&kind.name, name);
            }
        }
        for kind in shown {
            let name = all.top(&kind.name).to_owned();
            all.add(&mut scope, kind, &name, problems);
        }
        all
    }

    /// Returns the Rust name of a top-level type; empty for simple types and types without code.
    pub(super) fn top(&self, name: &str) -> &str {
        self.top.get(name).map_or("", String::as_str)
    }

    /// Returns the Rust name of a type defined inline in the composite with the Rust name `outer`.
    pub(super) fn inside(&self, outer: &str, name: &str) -> &str {
        let name = self.inside.get(outer).and_then(|inside| inside.get(name));
        name.map_or("", String::as_str)
    }

    /// Returns the Rust name of a value, choice or member of the type with the Rust name `kind`.
    pub(super) fn part(&self, kind: &str, name: &str) -> &str {
        let name = self.parts.get(kind).and_then(|parts| parts.get(name));
        name.map_or("", String::as_str)
    }

    /// Adds the names of the parts of a type and of its inline types.
    fn add(&mut self, scope: &mut Scope<'a>, kind: &'a Type, name: &str, problems: &mut Problems) {
        let parts = match &kind.kind {
            TypeKind::Simple(_) => return,
            TypeKind::Enum(kind) => {
                let values = kind.values.iter();
                let values = values.map(|value| (value.name.as_str(), &value.position));
                parts(Scope::of_types(), names::variant, values, problems)
            }
            TypeKind::Set(set) => {
                let choices = set.choices.iter();
                let choices = choices.map(|choice| (choice.name.as_str(), &choice.position));
                parts(Scope::of_words(), names::constant, choices, problems)
            }
            TypeKind::Composite(composite) => {
                self.add_inside(scope, composite, name, problems);
                let members = composite.members.iter();
                let members = members.map(|member| (member.name.as_str(), &member.position));
                parts(Scope::of_words(), names::method, members, problems)
            }
        };
        self.parts.insert(name.to_owned(), parts);
    }

    fn add_inside(
        &mut self,
        scope: &mut Scope<'a>,
        composite: &'a Composite,
        outer: &str,
        problems: &mut Problems,
    ) {
        let mut inside = HashMap::new();
        for member in composite.members.iter().filter(|member| !member.is_ref) {
            let kind = &*member.kind;
            let wanted = format!("{outer}{}", names::part(&kind.name));
            if let Some(name) = take(scope, kind, wanted, problems) {
                self.add(scope, kind, &name, problems);
                inside.insert(kind.name.as_str(), name);
            }
        }
        self.inside.insert(outer.to_owned(), inside);
    }
}

fn take<'a>(
    scope: &mut Scope<'a>,
    kind: &'a Type,
    wanted: String,
    problems: &mut Problems,
) -> Option<String> {
    let endings: &[&str] = match &kind.kind {
        TypeKind::Simple(_) => return None,
        TypeKind::Enum(_) | TypeKind::Set(_) => &[""],
        TypeKind::Composite(_) => &["Decoder", "Encoder"],
    };
    Some(scope.take_all(wanted, endings, (&kind.name, &kind.position), problems))
}

fn parts<'a>(
    mut scope: Scope<'a>,
    wanted: fn(&str) -> String,
    things: impl Iterator<Item = Thing<'a>>,
    problems: &mut Problems,
) -> HashMap<&'a str, String> {
    things
        .map(|thing| (thing.0, scope.take(wanted(thing.0), thing, problems)))
        .collect()
}
