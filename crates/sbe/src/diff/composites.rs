// SPDX-License-Identifier: Apache-2.0
//! Comparison of composites, message headers and group dimensions.

use std::collections::HashMap;
use std::sync::Arc;

use super::report::{Around, Report, step};
use super::{Impact, types};
use crate::model::{Composite, Member, Position, Presence, Type, TypeKind};

/// Compares two composites; `around` holds the versions that introduced these.
pub(super) fn compare(
    path: &str,
    (old, new): (&Composite, &Composite),
    at: &Position,
    around: Around,
    report: &mut Report,
) {
    if new.length < old.length {
        let what = format!("took {} bytes, and takes {}", old.length, new.length);
        report.add(Impact::Breaking, path, at, what);
    }
    let (of_old, of_new) = (places(old), places(new));
    for one in &old.members {
        match new.member(&one.name) {
            Some(two) => member(&step(path, &one.name), (one, two), around, report),
            None => match renamed(one, old, &of_new) {
                Some(two) => {
                    let path = step(path, &one.name);
                    report.renamed(&path, &two.position, &one.name, &two.name);
                    member(&path, (one, two), around, report);
                }
                None => gone(&step(path, &one.name), one, report),
            },
        }
    }
    for two in &new.members {
        let is_renamed = place(two).is_some_and(|place| of_old.contains_key(&place));
        if old.member(&two.name).is_none() && !is_renamed {
            let path = step(path, &two.name);
            if two.kind.encoded_length() == 0 {
                report.add(
                    Impact::Extension,
                    &path,
                    &two.position,
                    "is new, a constant",
                );
            } else if two.offset < old.length {
                let what = "is new, and overlaps old members";
                report.add(Impact::Breaking, &path, &two.position, what);
            } else {
                let what = "is new, and composites cannot be extended: blocks of older messages are too short for it";
                report.add(Impact::Breaking, &path, &two.position, what);
            }
        }
    }
}

fn member(path: &str, (old, new): (&Member, &Member), around: Around, report: &mut Report) {
    let place = &new.position;
    if old.offset != new.offset && new.kind.encoded_length() > 0 {
        let what = format!("was at offset {}, and is at {}", old.offset, new.offset);
        report.add(Impact::Breaking, path, place, what);
    }
    // Fields have their own presence; for members only the type defines it.
    if said(&old.kind) != said(&new.kind) {
        report.add(Impact::Breaking, path, place, "another presence");
    }
    let is_sent = old.kind.encoded_length() > 0 || new.kind.encoded_length() > 0;
    report.came(path, place, (old.since, new.since), around, is_sent);
    report.deprecated(path, place, old.deprecated, new.deprecated);
    if old.is_ref && new.is_ref {
        types::used(path, &old.kind, &new.kind, place, report);
    } else {
        types::compare(path, (&old.kind, &new.kind), place, around, report);
    }
}

/// Returns the presence of a type, if the type can have one.
fn said(kind: &Type) -> Option<Presence> {
    match &kind.kind {
        TypeKind::Simple(_) | TypeKind::Enum(_) => Some(kind.presence()),
        TypeKind::Set(_) | TypeKind::Composite(_) => None,
    }
}

/// Returns the new member at the position of an old one, under another name.
fn renamed<'a>(one: &Member, old: &Composite, of_new: &Places<'a>) -> Option<&'a Member> {
    let there = of_new.get(&place(one)?)?;
    old.member(&there.name).is_none().then_some(there)
}

fn gone(path: &str, one: &Member, report: &mut Report) {
    // Removing a member that is not encoded affects only source code.
    let impact = match one.kind.encoded_length() {
        0 => Impact::Code,
        _ => Impact::Breaking,
    };
    report.add(impact, path, &one.position, "is removed");
}

/// Encoded members by offset and length. No two members share a position.
type Places<'a> = HashMap<(u32, u32), &'a Member>;

fn places(composite: &Composite) -> Places<'_> {
    let members = composite.members.iter();
    members
        .filter_map(|member| Some((place(member)?, member)))
        .collect()
}

fn place(member: &Member) -> Option<(u32, u32)> {
    let length = member.kind.encoded_length();
    (length > 0).then_some((member.offset, length))
}

/// Compares the header or dimension composites, which are not versioned and must not change.
pub(super) fn frame(path: &str, old: &Arc<Type>, new: &Arc<Type>, report: &mut Report) {
    let around = Around::default();
    types::compare(&new.name, (old, new), &new.position, around, report);
    if let (TypeKind::Composite(one), TypeKind::Composite(two)) = (&old.kind, &new.kind)
        && one.length != two.length
    {
        let what = format!(
            "{} had {} bytes, and has {}, which moves what follows",
            new.name, one.length, two.length
        );
        report.add(Impact::Breaking, path, &new.position, what);
    }
}
