// SPDX-License-Identifier: Apache-2.0
//! Code generation plan of a block of a message or a group entry.

use super::scope::{Scope, Thing};
use super::type_names::TypeNames;
use super::value::{self, Place, Value};
use super::{extra_members, names};
use crate::model::{self, Data, Field, Group, TypeKind};
use crate::problem::Problems;

/// Names and layout of a message or a group entry.
pub(super) struct Plan<'a> {
    /// Name in the schema.
    pub(super) name: &'a str,
    /// Names of the decoder and encoder types.
    pub(super) decoder: String,
    pub(super) encoder: String,
    /// Type that the encoder of a group entry returns at its end.
    pub(super) parent: Option<String>,
    pub(super) values: Vec<Value<'a>>,
    /// Length of the fields that exist in every version, and the length in the current version.
    pub(super) fixed: u32,
    pub(super) length: u32,
    pub(super) tails: Vec<Tail<'a>>,
}

/// Group or data after a block.
pub(super) struct Tail<'a> {
    /// Name in the schema.
    pub(super) name: &'a str,
    pub(super) method: String,
    /// Marker type of the state in which this element is next.
    pub(super) marker: String,
    pub(super) description: Option<&'a str>,
    pub(super) deprecated: Option<u32>,
    /// Version that introduced it, if later than the block.
    pub(super) since: Option<u32>,
    pub(super) kind: TailKind<'a>,
}

pub(super) enum TailKind<'a> {
    Group(Box<GroupPlan<'a>>),
    Data(&'a Data),
}

/// Names of a group.
pub(super) struct GroupPlan<'a> {
    pub(super) group: &'a Group,
    /// Names of the decoder and encoder of the group.
    pub(super) decoder: String,
    pub(super) encoder: String,
    /// Type that the group encoder returns at its end.
    pub(super) parent: String,
    /// Name of the method that reads all entries with a callback; empty if there is none.
    pub(super) each: String,
    pub(super) entry: Plan<'a>,
    /// Version before which entries take no bytes: they have no fields, and all groups and data in them are newer.
    pub(super) empty_before: Option<u32>,
    /// Type of the dimensions composite, if it has members beyond those of the standard.
    pub(super) extended_dimensions: Option<String>,
}

/// Scope suffix of markers, which have a module of their own and cannot conflict with other types.
const MARKER: &str = " in at";

/// Marker type of the final state.
pub(super) const DONE: &str = "Done";

impl<'a> Plan<'a> {
    pub(super) fn message(message: &'a model::Message, plans: &mut Plans<'_, 'a>) -> Self {
        let name = names::part(&message.name);
        let mut plan = Self {
            name: &message.name,
            decoder: format!("{name}Decoder"),
            encoder: format!("{name}Encoder"),
            parent: None,
            values: Vec::new(),
            fixed: 0,
            length: message.block.length,
            tails: Vec::new(),
        };
        // The name cannot conflict: it is the first one in its module.
        let thing = (message.name.as_str(), &message.position);
        plans.take(name, &["Decoder", "Encoder"], thing);
        plan.fill(&message.block, message.since, "", plans);
        plan
    }

    fn fill(
        &mut self,
        block: &'a model::Block,
        since: u32,
        prefix: &str,
        plans: &mut Plans<'_, 'a>,
    ) {
        let mut methods = Scope::of_words();
        // Elements without encoded bytes do not extend the minimum block length.
        self.fixed = block
            .fields
            .iter()
            .filter(|field| field.since <= since && field.encoded_length() > 0)
            .map(|field| field.offset + field.encoded_length())
            .max()
            .unwrap_or(0);
        for field in &block.fields {
            let thing = (field.name.as_str(), &field.position);
            let method = methods.take(names::method(&field.name), thing, plans.problems);
            let value = value(field, method, (since, self.fixed), plans.types);
            self.values.push(value);
        }
        let groups = block.groups.iter().map(|group| {
            let thing = (group.name.as_str(), &group.position);
            (thing, Ok(group))
        });
        let data = block.data.iter().map(|data| {
            let thing = (data.name.as_str(), &data.position);
            (thing, Err(data))
        });
        let all: Vec<(_, Result<&'a Group, &'a Data>)> = groups.chain(data).collect();
        let mut markers: Vec<String> = all
            .iter()
            .map(|(thing, what)| plans.marker(prefix, *thing, what.is_ok()))
            .collect();
        markers.push(DONE.to_owned());
        for ((thing, what), at) in all.into_iter().zip(markers.windows(2)) {
            let [marker, next] = at else { continue };
            let name = thing.0;
            let method = methods.take(names::method(name), thing, plans.problems);
            let (description, deprecated, of_element) = match what {
                Ok(group) => (&group.description, group.deprecated, group.since),
                Err(data) => (&data.description, data.deprecated, data.since),
            };
            let kind = match what {
                Ok(group) => {
                    let after = format!("{}<'a, at::{next}>", self.encoder);
                    let mut plan = GroupPlan::new(group, since, marker, after, plans);
                    if plan.entry.has_tails() {
                        let each = format!("each_{method}");
                        plan.each = methods.take(each, thing, plans.problems);
                    }
                    TailKind::Group(Box::new(plan))
                }
                Err(data) => TailKind::Data(data),
            };
            self.tails.push(Tail {
                name,
                method,
                marker: marker.clone(),
                description: description.as_deref(),
                deprecated,
                since: (of_element > since).then_some(of_element),
                kind,
            });
        }
    }

    /// Returns true if groups or data follow the block, so that their order must be enforced.
    pub(super) fn has_tails(&self) -> bool {
        !self.tails.is_empty()
    }

    /// Returns true if fields were added after the block was introduced.
    pub(super) fn is_added_to(&self) -> bool {
        self.values
            .iter()
            .any(|value| matches!(value.place, Place::Added { .. }))
    }

    /// Returns the marker of the state after the tail at `index`.
    pub(super) fn after(&self, index: usize) -> &str {
        self.tails.get(index + 1).map_or(DONE, |tail| &tail.marker)
    }
}

impl<'a> GroupPlan<'a> {
    fn new(
        group: &'a Group,
        since: u32,
        name: &str,
        parent: String,
        plans: &mut Plans<'_, 'a>,
    ) -> Self {
        let since = since.max(group.since);
        let encoder = format!("{name}Encoder");
        let mut entry = Plan {
            name: &group.name,
            decoder: format!("{name}Entry"),
            encoder: format!("{name}EntryEncoder"),
            parent: Some(format!("{encoder}<'a>")),
            values: Vec::new(),
            fixed: 0,
            length: group.block.length,
            tails: Vec::new(),
        };
        let decoder = format!("{name}Decoder");
        entry.fill(&group.block, since, name, plans);
        let came: Option<Vec<u32>> = entry.tails.iter().map(|tail| tail.since).collect();
        let came = came.filter(|_| entry.fixed == 0);
        Self {
            empty_before: came.and_then(|came| came.into_iter().min()),
            extended_dimensions: extra_members::dimensions(&group.dimensions.kind, plans.types),
            each: String::new(),
            group,
            decoder,
            encoder,
            parent,
            entry,
        }
    }
}

/// State shared by the plans of one message.
pub(super) struct Plans<'p, 'a> {
    kinds: Scope<'a>,
    types: &'p TypeNames<'a>,
    problems: &'p mut Problems,
}

impl<'p, 'a> Plans<'p, 'a> {
    pub(super) fn new(types: &'p TypeNames<'a>, problems: &'p mut Problems) -> Self {
        Self {
            kinds: Scope::of_types(),
            types,
            problems,
        }
    }

    /// Returns the marker type of an element; the types of a group are named after it.
    fn marker(&mut self, prefix: &str, thing: Thing<'a>, is_group: bool) -> String {
        let wanted = if prefix.is_empty() {
            names::marker(thing.0)
        } else {
            format!("{prefix}{}", names::part(thing.0))
        };
        if !is_group {
            return self.take(wanted, &[MARKER], thing);
        }
        let endings = [MARKER, "Decoder", "Encoder", "Entry", "EntryEncoder"];
        self.take(wanted, &endings, thing)
    }

    fn take(&mut self, wanted: String, endings: &[&str], thing: Thing<'a>) -> String {
        self.kinds.take_all(wanted, endings, thing, self.problems)
    }
}

fn value<'a>(
    field: &'a Field,
    method: String,
    (since, fixed): (u32, u32),
    types: &TypeNames<'_>,
) -> Value<'a> {
    let is_sent = field.encoded_length() > 0;
    let place = if field.since <= since {
        Place::Fixed
    } else if is_sent && field.offset >= fixed {
        Place::Added {
            since: field.since,
            at: field.offset - fixed,
        }
    } else {
        Place::FixedSince(field.since)
    };
    // An element without encoded bytes can be at any offset, including one beyond the fixed part or the sender's block.
    let offset = if is_sent {
        field.offset
    } else {
        field.offset.min(fixed)
    };
    let (constant, value_ref) = (field.constant.as_ref(), field.value_ref.as_ref());
    let kind = types.top(&field.kind.name);
    Value {
        name: &field.name,
        method,
        description: field.description.as_deref(),
        deprecated: field.deprecated,
        kind: &field.kind,
        path: match &field.kind.kind {
            TypeKind::Simple(_) => String::new(),
            _ => format!("types::{kind}"),
        },
        presence: field.presence,
        constant,
        variant: value::variant(&field.kind, constant, value_ref)
            .map(|variant| types.part(kind, variant).to_owned()),
        offset,
        place,
    }
}
