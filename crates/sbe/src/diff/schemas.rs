// SPDX-License-Identifier: Apache-2.0
//! Comparison of two schemas.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::report::{Around, Report};
use super::{Impact, blocks, composites, types};
use crate::model::{Message, Schema, Type};

pub(super) fn compare(old: &Schema, new: &Schema, report: &mut Report) {
    root(old, new, report);
    let (one, two) = (&old.header, &new.header);
    report.renamed("header", &two.kind.position, &one.kind.name, &two.kind.name);
    composites::frame("header", &one.kind, &two.kind, report);
    messages(old, new, report);
    unused_types(old, new, report);
}

fn root(old: &Schema, new: &Schema, report: &mut Report) {
    let place = &new.position;
    if old.id != new.id {
        let what = format!("the id was {}, and is {}", old.id, new.id);
        report.add(Impact::Breaking, "schema", place, what);
    }
    if old.byte_order != new.byte_order {
        report.add(Impact::Breaking, "schema", place, "the byte order changed");
    }
    if old.package != new.package {
        let what = format!("the package was {}, and is {}", old.package, new.package);
        report.add(Impact::Code, "schema", place, what);
    }
    if new.version < old.version {
        let what = format!(
            "the version went back from {} to {}",
            old.version, new.version
        );
        report.add(Impact::Breaking, "schema", place, what);
    } else if new.version > old.version {
        let what = format!("the version was {}, and is {}", old.version, new.version);
        report.add(Impact::Extension, "schema", place, what);
    }
    if old.semantic_version != new.semantic_version {
        report.add(
            Impact::None,
            "schema",
            place,
            "the semantic version changed",
        );
    }
}

fn messages(old: &Schema, new: &Schema, report: &mut Report) {
    let by_id: HashMap<u64, &Message> = new
        .messages
        .iter()
        .map(|message| (message.id, message))
        .collect();
    let by_name: HashMap<&str, &Message> = new
        .messages
        .iter()
        .map(|message| (message.name.as_str(), message))
        .collect();
    let ids: HashMap<&str, u64> = old
        .messages
        .iter()
        .map(|message| (message.name.as_str(), message.id))
        .collect();
    for one in &old.messages {
        let Some(two) = by_id.get(&one.id) else {
            let (place, what) = match by_name.get(one.name.as_str()) {
                Some(two) => (
                    &two.position,
                    format!("had the template id {}, and has {}", one.id, two.id),
                ),
                None => (&one.position, "is removed".to_owned()),
            };
            report.add(Impact::Breaking, &one.name, place, what);
            continue;
        };
        match ids.get(two.name.as_str()) {
            Some(other) if *other != one.id => {
                let was = format!("was called {}", one.name);
                report.takes_a_name(&two.name, &two.position, &was, other);
            }
            _ => report.renamed(&one.name, &two.position, &one.name, &two.name),
        }
        let since = (one.since, two.since);
        report.came(&one.name, &two.position, since, Around::default(), true);
        report.deprecated(&one.name, &two.position, one.deprecated, two.deprecated);
        if one.semantic_type != two.semantic_type {
            let what = "the semantic type changed";
            report.add(Impact::None, &one.name, &two.position, what);
        }
        let both = (&one.block, &two.block);
        let around = Around::default().and(one.since, two.since);
        blocks::compare(&two.name, both, &two.position, (around, false), report);
    }
    let known: HashSet<u64> = old.messages.iter().map(|message| message.id).collect();
    for two in new.messages.iter().filter(|two| !known.contains(&two.id)) {
        match ids.get(two.name.as_str()) {
            // Older readers reject the new message by its template id, whatever its `sinceVersion`.
            None => report.add(Impact::Extension, &two.name, &two.position, "is new"),
            Some(other) if by_id.contains_key(other) => {
                report.takes_a_name(&two.name, &two.position, "is new", other);
            }
            // A changed template id is reported above.
            Some(_) => {}
        }
    }
}

/// Compares types that no message uses, which affect only source code. Types in use were compared through the elements
/// that use them, and the layout of data was reported there.
fn unused_types(old: &Schema, new: &Schema, report: &mut Report) {
    report.go_on_with_names();
    let by_name: HashMap<&str, &Arc<Type>> = new
        .types
        .iter()
        .map(|two| (two.name.as_str(), two))
        .collect();
    for one in &old.types {
        match by_name.get(one.name.as_str()) {
            Some(two) => {
                let around = Around::default();
                types::compare(&one.name, (one, two), &two.position, around, report);
            }
            None => report.add(
                Impact::Code,
                &one.name,
                &one.position,
                "the type is removed",
            ),
        }
    }
}
