// SPDX-License-Identifier: Apache-2.0
//! Comparison of types.

use std::collections::HashMap;
use std::sync::Arc;

use super::report::{Around, Report, step};
use super::{Impact, blocks, composites};
use crate::charset::Charset;
use crate::model::{DataLayout, Enum, Position, Presence, Scalar, Set, Simple, Type, TypeKind};

/// Compares the types of an element that is in both schemas.
pub(super) fn used(
    path: &str,
    old: &Arc<Type>,
    new: &Arc<Type>,
    place: &Position,
    report: &mut Report,
) {
    if old.name == new.name {
        // Changes of a type are reported under the name of the type.
        compare(&new.name, (old, new), place, Around::default(), report);
    } else {
        let what = format!("was of type {}, and is of {}", old.name, new.name);
        report.add(Impact::Code, path, place, what);
        compare(path, (old, new), place, Around::default(), report);
    }
}

/// Compares two types and the versions that introduced them. Changes of an implicit type are reported where it is used.
pub(super) fn compare(
    path: &str,
    (old, new): (&Arc<Type>, &Arc<Type>),
    used: &Position,
    around: Around,
    report: &mut Report,
) {
    if !report.first_time(old, new) {
        return;
    }
    let place = if new.built_in { used } else { &new.position };
    match (&old.kind, &new.kind) {
        (TypeKind::Simple(one), TypeKind::Simple(two)) => simple(path, one, two, place, report),
        (TypeKind::Enum(one), TypeKind::Enum(two)) => enumeration(path, one, two, place, report),
        (TypeKind::Set(one), TypeKind::Set(two)) => set(path, one, two, place, report),
        (TypeKind::Composite(one), TypeKind::Composite(two)) => {
            let around = around.and(old.since, new.since);
            composites::compare(path, (one, two), place, around, report);
        }
        _ => {
            let impact = match (as_primitive(old), as_primitive(new)) {
                (Some(one), Some(two)) if one == two => Impact::Code,
                _ => Impact::Breaking,
            };
            report.add(impact, path, place, "the kind of type changed");
        }
    }
    report.deprecated(path, place, old.deprecated, new.deprecated);
    if old.package != new.package {
        report.add(Impact::Code, path, place, "the package changed");
    }
}

/// Returns the encoding of a single value: naming the values of a number does not change its encoding.
fn as_primitive(kind: &Type) -> Option<crate::model::Primitive> {
    match &kind.kind {
        TypeKind::Simple(simple) if simple.is_array || simple.presence == Presence::Constant => {
            None
        }
        TypeKind::Simple(simple) => Some(simple.primitive),
        TypeKind::Enum(kind) => Some(kind.encoding),
        TypeKind::Set(set) => Some(set.encoding),
        TypeKind::Composite(_) => None,
    }
}

fn simple(path: &str, old: &Simple, new: &Simple, place: &Position, report: &mut Report) {
    let mut breaking = |what: String| report.add(Impact::Breaking, path, place, what);
    let are_constant = old.presence == Presence::Constant && new.presence == Presence::Constant;
    if old.primitive != new.primitive {
        breaking(format!("was {}, and is {}", old.primitive, new.primitive));
    }
    if (old.length, old.is_array) != (new.length, new.is_array) && !are_constant {
        breaking(format!(
            "had {} elements, and has {}",
            old.length, new.length
        ));
    }
    if old.presence == Presence::Optional && old.null != new.null {
        let (was, is) = (old.null.shown(old.primitive), new.null.shown(new.primitive));
        breaking(format!("null was {was}, and is {is}"));
    }
    if !same_encoding(
        old.character_encoding.as_deref(),
        new.character_encoding.as_deref(),
    ) {
        breaking("the characters have another encoding".to_owned());
    }
    presence(path, old.presence, new.presence, place, report);
    if (old.min, old.max) != (new.min, new.max) {
        let what = format!(
            "went from {} to {}, and goes from {} to {}",
            old.min.shown(old.primitive),
            old.max.shown(old.primitive),
            new.min.shown(new.primitive),
            new.max.shown(new.primitive)
        );
        report.add(Impact::Code, path, place, what);
    }
    let (one, two) = (old.constant.as_ref(), new.constant.as_ref());
    blocks::constant(path, one, two, place, report);
}

/// Compares the default presence of two types. Its effect is reported for each field and member without its own
/// presence.
fn presence(path: &str, old: Presence, new: Presence, place: &Position, report: &mut Report) {
    if old != new {
        let what = "the default presence changed";
        report.add(Impact::None, path, place, what);
    }
}

fn same_encoding(old: Option<&str>, new: Option<&str>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => Charset::is_one(old, new),
        (old, new) => old == new,
    }
}

fn enumeration(path: &str, old: &Enum, new: &Enum, place: &Position, report: &mut Report) {
    if old.encoding != new.encoding {
        let what = format!("was sent as {}, and is as {}", old.encoding, new.encoding);
        report.add(Impact::Breaking, path, place, what);
    }
    presence(path, old.presence, new.presence, place, report);
    if old.null != new.null {
        let (was, is) = (old.null.shown(old.encoding), new.null.shown(new.encoding));
        let what = format!("null was {was}, and is {is}");
        // For an optional field, the change is reported for the field.
        let impact = match old.presence {
            Presence::Optional => Impact::Breaking,
            _ => Impact::Code,
        };
        report.add(impact, path, place, what);
    }
    let (of_old, of_new) = (Names::of_enum(old), Names::of_enum(new));
    for one in &old.values {
        let path = step(path, &one.name);
        let same_value = of_new.by_number.get(&one.value).map(|at| &new.values[*at]);
        let same_name = of_new.by_name.get(&*one.name).map(|at| &new.values[*at]);
        match (same_value, same_name) {
            (_, Some(two)) if two.value != one.value => {
                let was = Scalar::Integer(one.value).shown(old.encoding);
                let is = Scalar::Integer(two.value).shown(new.encoding);
                let what = format!("was {was}, and is {is}");
                report.add(Impact::Breaking, &path, &two.position, what);
            }
            (Some(two), _) => {
                report.renamed(&path, &two.position, &one.name, &two.name);
                report.deprecated(&path, &two.position, one.deprecated, two.deprecated);
            }
            (None, _) => {
                let what = "is removed; deprecate it instead";
                report.add(Impact::Breaking, &path, &one.position, what);
            }
        }
    }
    for two in &new.values {
        if !of_old.know(&two.name, two.value) {
            let path = step(path, &two.name);
            let what = "is new: older readers see an unknown value";
            report.add(Impact::Extension, &path, &two.position, what);
        }
    }
}

fn set(path: &str, old: &Set, new: &Set, place: &Position, report: &mut Report) {
    if old.encoding != new.encoding {
        let what = format!("was sent as {}, and is as {}", old.encoding, new.encoding);
        report.add(Impact::Breaking, path, place, what);
    }
    let (of_old, of_new) = (Names::of_set(old), Names::of_set(new));
    for one in &old.choices {
        let path = step(path, &one.name);
        let same_name = of_new.by_name.get(&*one.name).map(|at| &new.choices[*at]);
        let bit = i128::from(one.bit);
        let same_bit = of_new.by_number.get(&bit).map(|at| &new.choices[*at]);
        match (same_name, same_bit) {
            (Some(two), _) if two.bit != one.bit => {
                let what = format!("was bit {}, and is {}", one.bit, two.bit);
                report.add(Impact::Breaking, &path, &two.position, what);
            }
            (Some(two), _) => {
                report.deprecated(&path, &two.position, one.deprecated, two.deprecated);
            }
            (None, Some(two)) => report.renamed(&path, &two.position, &one.name, &two.name),
            (None, None) => {
                let what = "is removed; deprecate it instead";
                report.add(Impact::Breaking, &path, &one.position, what);
            }
        }
    }
    for two in &new.choices {
        if !of_old.know(&two.name, two.bit.into()) {
            let path = step(path, &two.name);
            let what = "is new: older readers see an unknown flag";
            report.add(Impact::Extension, &path, &two.position, what);
        }
    }
}

/// Lookup of elements by name and by number.
struct Names<'schema> {
    by_name: HashMap<&'schema str, usize>,
    by_number: HashMap<i128, usize>,
}

impl<'schema> Names<'schema> {
    fn of_enum(kind: &'schema Enum) -> Self {
        let values = kind.values.iter();
        Self::of(values.map(|value| (value.name.as_str(), value.value)))
    }

    fn of_set(set: &'schema Set) -> Self {
        let choices = set.choices.iter();
        Self::of(choices.map(|choice| (choice.name.as_str(), choice.bit.into())))
    }

    fn of(things: impl Iterator<Item = (&'schema str, i128)>) -> Self {
        let mut names = Self {
            by_name: HashMap::new(),
            by_number: HashMap::new(),
        };
        for (at, (name, number)) in things.enumerate() {
            names.by_name.insert(name, at);
            // The first of several choices with the same bit.
            names.by_number.entry(number).or_insert(at);
        }
        names
    }

    fn know(&self, name: &str, number: i128) -> bool {
        self.by_name.contains_key(name) || self.by_number.contains_key(&number)
    }
}

/// Compares the encodings of data.
pub(super) fn data(
    path: &str,
    old: &DataLayout,
    new: &DataLayout,
    place: &Position,
    report: &mut Report,
) {
    if old.kind.name != new.kind.name {
        let what = format!("was of type {}, and is of {}", old.kind.name, new.kind.name);
        report.add(Impact::Code, path, place, what);
    }
    let frame = |layout: &DataLayout| {
        let length = layout.length;
        (length.offset, length.primitive, layout.start)
    };
    if frame(old) != frame(new) {
        let what = "the encoding of the length changed";
        report.add(Impact::Breaking, path, place, what);
    }
    if new.length.max != old.length.max {
        let what = format!(
            "had up to {} bytes, and has up to {}: the side with the lower bound rejects more",
            old.length.max, new.length.max
        );
        report.add(Impact::Breaking, path, place, what);
    }
    if !same_encoding(
        old.character_encoding.as_deref(),
        new.character_encoding.as_deref(),
    ) {
        let what = "the characters have another encoding";
        report.add(Impact::Breaking, path, place, what);
    }
}
