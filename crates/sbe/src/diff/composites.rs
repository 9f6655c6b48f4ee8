//! Composites, and what frames messages and groups.

use std::sync::Arc;

use super::report::{Report, step};
use super::{Impact, types};
use crate::model::{Composite, Member, Position, Type};

pub(super) fn compare(
    path: &str,
    old: &Composite,
    new: &Composite,
    place: &Position,
    report: &mut Report,
) {
    if new.length < old.length {
        let what = format!("took {} bytes, and takes {}", old.length, new.length);
        report.add(Impact::Breaking, path, place, what);
    }
    for one in &old.members {
        match new.member(&one.name) {
            Some(two) => member(&step(path, &one.name), one, two, report),
            None => gone_or_renamed(path, one, old, new, report),
        }
    }
    for two in &new.members {
        let is_renamed = old.members.iter().any(|one| is_at(one, two));
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
                let what = "is new, and lies where older ones have something else";
                report.add(Impact::Breaking, &path, &two.position, what);
            } else {
                let what = "is new, and composites cannot be extended: blocks of older messages are too short for it";
                report.add(Impact::Breaking, &path, &two.position, what);
            }
        }
    }
}

fn member(path: &str, old: &Member, new: &Member, report: &mut Report) {
    let place = &new.position;
    if old.offset != new.offset && new.kind.encoded_length() > 0 {
        let what = format!("was at offset {}, and is at {}", old.offset, new.offset);
        report.add(Impact::Breaking, path, place, what);
    }
    report.came(path, place, old.since, new.since);
    report.deprecated(path, place, old.deprecated, new.deprecated);
    if old.is_ref && new.is_ref {
        types::used(path, &old.kind, &new.kind, place, report);
    } else {
        types::compare(path, &old.kind, &new.kind, place, report);
    }
}

fn gone_or_renamed(
    path: &str,
    one: &Member,
    old: &Composite,
    new: &Composite,
    report: &mut Report,
) {
    let path = step(path, &one.name);
    let renamed = new
        .members
        .iter()
        .find(|two| is_at(one, two) && old.member(&two.name).is_none());
    match renamed {
        Some(two) => {
            report.renamed(&path, &two.position, &one.name, &two.name);
            member(&path, one, two, report);
        }
        None => report.add(Impact::Breaking, &path, &one.position, "is gone"),
    }
}

/// Whether two members are at the same place and take as much of it.
fn is_at(old: &Member, new: &Member) -> bool {
    let length = old.kind.encoded_length();
    length > 0 && old.offset == new.offset && length == new.kind.encoded_length()
}

/// The composites in front of messages or of groups, which have no version and must not change at all.
pub(super) fn frame(path: &str, old: &Arc<Type>, new: &Arc<Type>, report: &mut Report) {
    use crate::model::TypeKind::Composite;
    types::compare(&new.name, old, new, &new.position, report);
    if let (Composite(one), Composite(two)) = (&old.kind, &new.kind)
        && one.length != two.length
    {
        let what = format!(
            "{} had {} bytes, and has {}, in front of what nobody could find then",
            new.name, one.length, two.length
        );
        report.add(Impact::Breaking, path, &new.position, what);
    }
}
