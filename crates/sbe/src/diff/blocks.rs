// SPDX-License-Identifier: Apache-2.0
//! Comparison of blocks: fields, groups and data.

use std::collections::HashMap;

use super::report::{Around, Report, step};
use super::{Impact, composites, types};
use crate::model::{Block, Constant, Data, Field, Group, Position, Presence, TypeKind};

/// Element with an id and a name.
trait Numbered {
    fn id(&self) -> u32;
    fn name(&self) -> &str;
    fn since(&self) -> u32;
    fn deprecated(&self) -> Option<u32>;
    fn is_sent(&self) -> bool;
    fn position(&self) -> &Position;
}

macro_rules! numbered {
    ($($kind:ty, $is_sent:expr;)*) => {$(
        impl Numbered for $kind {
            fn id(&self) -> u32 {
                self.id
            }
            fn name(&self) -> &str {
                &self.name
            }
            fn since(&self) -> u32 {
                self.since
            }
            fn deprecated(&self) -> Option<u32> {
                self.deprecated
            }
            fn is_sent(&self) -> bool {
                $is_sent(self)
            }
            fn position(&self) -> &Position {
                &self.position
            }
        }
    )*};
}

numbered! {
    Field, |field: &Field| field.encoded_length() > 0;
    Group, |_| true;
    Data, |_| true;
}

/// Compares the blocks of two messages or groups; `around` holds the versions that introduced these.
pub(super) fn compare(
    path: &str,
    (old, new): (&Block, &Block),
    place: &Position,
    (around, in_group): (Around, bool),
    report: &mut Report,
) {
    if old.length != new.length {
        let last = new.fields.last().or(old.fields.last());
        let place = last.map_or(place, |last| &last.position);
        let what = format!(
            "the block took {} bytes, and takes {}",
            old.length, new.length
        );
        report.add(Impact::Extension, path, place, what);
    }
    let fields = Pairs::of(&old.fields, &new.fields);
    for &(one, two) in &fields.both {
        let path = step(path, &two.name);
        both(&path, (one, two), &fields, around, report);
        field(&path, one, two, report);
    }
    for one in &fields.gone {
        let (path, place) = (step(path, &one.name), &one.position);
        // Removing an element that is not encoded affects only source code.
        let impact = if one.is_sent() {
            Impact::Breaking
        } else {
            Impact::Code
        };
        report.add(impact, &path, place, "is removed; deprecate it instead");
    }
    for two in &fields.new {
        if !fields.takes_a_name(path, *two, report) {
            new_field(&step(path, &two.name), two, old, report);
        }
    }

    let groups = Pairs::of(&old.groups, &new.groups);
    sequence(path, "groups", &groups, report);
    for &(one, two) in &groups.both {
        let path = step(path, &two.name);
        both(&path, (one, two), &groups, around, report);
        let (was, is) = (&one.dimensions.kind, &two.dimensions.kind);
        composites::frame(&path, was, is, report);
        entries(&path, one, two, report);
        let blocks = (&one.block, &two.block);
        let around = around.and(one.since, two.since);
        compare(&path, blocks, &two.position, (around, true), report);
    }
    gone(path, &groups.gone, report);
    // Data follows the groups, so an older reader would read a new group as data.
    appended(path, &groups, in_group, !old.data.is_empty(), report);

    let data = Pairs::of(&old.data, &new.data);
    sequence(path, "data", &data, report);
    for &(one, two) in &data.both {
        let path = step(path, &two.name);
        both(&path, (one, two), &data, around, report);
        types::data(&path, &one.encoding, &two.encoding, &two.position, report);
    }
    gone(path, &data.gone, report);
    appended(path, &data, in_group, false, report);
}

/// Compares the allowed numbers of group entries. A reader rejects counts outside of its range.
fn entries(path: &str, old: &Group, new: &Group, report: &mut Report) {
    let limits = |group: &Group| (group.dimensions.min_count, group.dimensions.count.max);
    let (was, is) = (limits(old), limits(new));
    if was != is {
        let what = format!(
            "had from {} to {} entries, and has from {} to {}: each side rejects counts of the other",
            was.0, was.1, is.0, is.1
        );
        report.add(Impact::Breaking, path, &new.position, what);
    }
}

/// Elements of the old schema matched with those of the new one.
struct Pairs<'schema, Thing> {
    both: Vec<(&'schema Thing, &'schema Thing)>,
    gone: Vec<&'schema Thing>,
    new: Vec<&'schema Thing>,
    /// Ids of the old elements by name.
    ids: HashMap<&'schema str, u32>,
    /// True if the matched elements come first in the new schema, in their old order.
    in_sequence: bool,
}

impl<'schema, Thing: Numbered> Pairs<'schema, Thing> {
    fn of(old: &'schema [Thing], new: &'schema [Thing]) -> Self {
        let (of_old, of_new) = (Index::of(old), Index::of(new));
        let mut pairs = Self {
            both: Vec::new(),
            gone: Vec::new(),
            new: Vec::new(),
            ids: old.iter().map(|one| (one.name(), one.id())).collect(),
            in_sequence: true,
        };
        for one in old {
            match of_new.counterpart(one, &of_old) {
                Some(place) => {
                    pairs.in_sequence &= place == pairs.both.len();
                    pairs.both.push((one, &new[place]));
                }
                // The shift of the remaining elements is reported with the removed one.
                None => pairs.gone.push(one),
            }
        }
        pairs.new = new
            .iter()
            .filter(|two| of_old.counterpart(*two, &of_new).is_none())
            .collect();
        pairs
    }

    /// Returns true, and reports it, if a new element has the name of an old element that was renamed.
    fn takes_a_name(&self, path: &str, new: &Thing, report: &mut Report) -> bool {
        let Some(other) = self.ids.get(new.name()) else {
            return false;
        };
        let path = step(path, new.name());
        report.takes_a_name(&path, new.position(), "is new", *other);
        true
    }
}

/// Lookup of elements by id and by name.
struct Index<'schema> {
    by_id: HashMap<u32, usize>,
    by_name: HashMap<&'schema str, (usize, u32)>,
}

impl<'schema> Index<'schema> {
    fn of(things: &'schema [impl Numbered]) -> Self {
        let places = things.iter().enumerate();
        Self {
            by_id: places.clone().map(|(at, thing)| (thing.id(), at)).collect(),
            by_name: places
                .map(|(at, thing)| (thing.name(), (at, thing.id())))
                .collect(),
        }
    }

    /// Returns the element with the same id, or else the one with the same name whose id is not used in the other
    /// schema.
    fn counterpart(&self, thing: &impl Numbered, over_there: &Self) -> Option<usize> {
        if let Some(place) = self.by_id.get(&thing.id()) {
            return Some(*place);
        }
        let (place, id) = self.by_name.get(thing.name())?;
        (!over_there.by_id.contains_key(id)).then_some(*place)
    }
}

/// Compares what fields, groups and data have in common.
fn both<Thing: Numbered>(
    path: &str,
    (old, new): (&Thing, &Thing),
    pairs: &Pairs<'_, Thing>,
    around: Around,
    report: &mut Report,
) {
    let place = new.position();
    match pairs.ids.get(new.name()) {
        Some(other) if *other != old.id() => {
            let was = format!("was called {}", old.name());
            report.takes_a_name(path, place, &was, *other);
        }
        _ => report.renamed(path, place, old.name(), new.name()),
    }
    if old.id() != new.id() {
        let what = format!("had the id {}, and has {}", old.id(), new.id());
        report.add(Impact::Code, path, place, what);
    }
    let is_sent = old.is_sent() || new.is_sent();
    report.came(path, place, (old.since(), new.since()), around, is_sent);
    report.deprecated(path, place, old.deprecated(), new.deprecated());
}

fn field(path: &str, old: &Field, new: &Field, report: &mut Report) {
    let place = &new.position;
    if old.is_sent() && new.is_sent() && old.offset != new.offset {
        let what = format!("was at offset {}, and is at {}", old.offset, new.offset);
        report.add(Impact::Breaking, path, place, what);
    }
    if old.presence != new.presence {
        let what = match (old.presence, new.presence) {
            (Presence::Constant, _) => "was constant and not sent, and is sent",
            (_, Presence::Constant) => "was sent, and is constant and not sent",
            (_, Presence::Optional) => {
                "is optional now: older readers take its null value for a value"
            }
            (_, Presence::Required) => {
                "is required now: readers take the null value of older writers for a value"
            }
        };
        report.add(Impact::Breaking, path, place, what);
    }
    null(path, old, new, report);
    constant(
        path,
        old.constant.as_ref(),
        new.constant.as_ref(),
        place,
        report,
    );
    if old.epoch.as_deref().unwrap_or("unix") != new.epoch.as_deref().unwrap_or("unix") {
        let what = "the epoch of the timestamp changed";
        report.add(Impact::Breaking, path, place, what);
    }
    let unit = |field: &Field| field.time_unit.clone().unwrap_or("nanosecond".to_owned());
    if unit(old) != unit(new) {
        let what = "the unit of the timestamp changed";
        report.add(Impact::Breaking, path, place, what);
    }
    if old.semantic_type != new.semantic_type {
        report.add(Impact::None, path, place, "the semantic type changed");
    }
    types::used(path, &old.kind, &new.kind, place, report);
}

/// Compares the null values if the field, not its type, is optional. In that case nothing is reported for the type.
fn null(path: &str, old: &Field, new: &Field, report: &mut Report) {
    let is_own = |field: &Field| field.presence == Presence::Optional;
    let by_type = [old, new].map(|field| field.kind.presence() == Presence::Optional);
    let [(one, old_type), (two, new_type)] = match (&old.kind.kind, &new.kind.kind) {
        (TypeKind::Simple(one), TypeKind::Simple(two)) => {
            [(one.null, one.primitive), (two.null, two.primitive)]
        }
        (TypeKind::Enum(one), TypeKind::Enum(two)) => {
            [(one.null, one.encoding), (two.null, two.encoding)]
        }
        _ => return,
    };
    if is_own(old) && is_own(new) && by_type != [true, true] && one != two {
        let (was, is) = (one.shown(old_type), two.shown(new_type));
        let what = format!("null was {was}, and is {is}");
        report.add(Impact::Breaking, path, &new.position, what);
    }
}

pub(super) fn constant(
    path: &str,
    old: Option<&Constant>,
    new: Option<&Constant>,
    place: &Position,
    report: &mut Report,
) {
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        let what = "the constant changed: each side assumes its own value";
        report.add(Impact::Breaking, path, place, what);
    }
}

/// Checks that a new field is placed after the old block and has a `sinceVersion`.
fn new_field(path: &str, new: &Field, old: &Block, report: &mut Report) {
    if new.presence == Presence::Constant {
        report.add(Impact::Extension, path, &new.position, "is new, a constant");
        return;
    }
    if new.encoded_length() == 0 {
        let what = "is new, and not encoded";
        report.add(Impact::Extension, path, &new.position, what);
        return;
    }
    if !report.is_marked_new(path, &new.position, new.since) {
        return;
    }
    let (from, to) = (new.offset, new.offset + new.encoded_length());
    // Fields are ordered by offset, so only the first one that ends after the start of the new field can overlap it.
    let first = old
        .fields
        .partition_point(|field| field.offset + field.encoded_length() <= from);
    let covered = old.fields[first..]
        .iter()
        .take_while(|field| field.offset < to)
        .find(|field| field.encoded_length() > 0);
    match covered {
        Some(field) => {
            let what = format!("is new, and overlaps the old field {}", field.name);
            report.add(Impact::Breaking, path, &new.position, what);
        }
        None => report.add(Impact::Extension, path, &new.position, "is new"),
    }
}

/// Checks that the old groups or data come first in the new schema, in their old order.
fn sequence<Thing: Numbered>(
    path: &str,
    what: &str,
    pairs: &Pairs<'_, Thing>,
    report: &mut Report,
) {
    if let (false, Some((_, two))) = (pairs.in_sequence, pairs.both.first()) {
        let what = format!("the old {what} are not first or not in their old order");
        report.add(Impact::Breaking, path, two.position(), what);
    }
}

fn gone<Thing: Numbered>(path: &str, things: &[&Thing], report: &mut Report) {
    for one in things {
        let (path, place) = (step(path, one.name()), one.position());
        let what = "is removed; deprecate it and encode it as empty";
        report.add(Impact::Breaking, &path, place, what);
    }
}

fn appended<Thing: Numbered>(
    path: &str,
    pairs: &Pairs<'_, Thing>,
    in_group: bool,
    data_follows: bool,
    report: &mut Report,
) {
    for two in &pairs.new {
        if pairs.takes_a_name(path, *two, report) {
            continue;
        }
        let (path, place) = (step(path, two.name()), two.position());
        if !report.is_marked_new(&path, place, two.since()) {
            continue;
        }
        if in_group {
            let what = "is new in group entries: older readers expect the next entry in its place";
            report.add(Impact::Breaking, &path, place, what);
        } else if data_follows {
            let what = "is new before data: older readers expect the data in its place";
            report.add(Impact::Breaking, &path, place, what);
        } else {
            report.add(Impact::Extension, &path, place, "is new");
        }
    }
}
