//! A block of a message or of a group's entries, with everything that the Rust for it needs to know.

use super::scope::{Scope, Thing};
use super::type_names::TypeNames;
use super::value::{self, Place, Value};
use super::{names, own};
use crate::model::{self, Data, Field, Group, TypeKind};
use crate::problem::Problems;

/// What is said of a message or a group.
pub(super) struct Plan<'a> {
    /// Its name in the schema.
    pub(super) name: &'a str,
    /// Its decoder and its encoder.
    pub(super) decoder: String,
    pub(super) encoder: String,
    /// What the encoder of a group's entry gives back at its end.
    pub(super) parent: Option<String>,
    pub(super) values: Vec<Value<'a>>,
    /// How many bytes of fields there are in every version, and now.
    pub(super) fixed: u32,
    pub(super) length: u32,
    pub(super) tails: Vec<Tail<'a>>,
}

/// What follows a block.
pub(super) struct Tail<'a> {
    /// Its name in the schema.
    pub(super) name: &'a str,
    pub(super) method: String,
    /// The type that says that this is next.
    pub(super) marker: String,
    pub(super) description: Option<&'a str>,
    pub(super) deprecated: Option<u32>,
    /// The version in which it came, where the block is older.
    pub(super) since: Option<u32>,
    pub(super) kind: TailKind<'a>,
}

pub(super) enum TailKind<'a> {
    Group(Box<GroupPlan<'a>>),
    Data(&'a Data),
}

/// What is said of a group.
pub(super) struct GroupPlan<'a> {
    pub(super) group: &'a Group,
    /// The decoder and the encoder of the whole of it.
    pub(super) decoder: String,
    pub(super) encoder: String,
    /// What its encoder gives back at its end.
    pub(super) parent: String,
    /// The method that reads it in one go, where there is one.
    pub(super) each: String,
    pub(super) entry: Plan<'a>,
    /// The version before which entries have nothing: no fields, and what is behind them came later.
    pub(super) empty_before: Option<u32>,
    /// The type of its dimensions, where they have more than the standard asks for.
    pub(super) own: Option<String>,
}

/// Markers have a module of their own, where no other type is in their way.
const MARKER: &str = " in at";

/// The marker of where everything has been read or written.
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
        // It is the first in its module, and gets what it wants.
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
        // What is not sent asks for no byte of an older sender.
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
            let (description, deprecated, own) = match what {
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
                since: (own > since).then_some(own),
                kind,
            });
        }
    }

    /// Whether something follows the block, so that there is an order to keep.
    pub(super) fn has_tails(&self) -> bool {
        !self.tails.is_empty()
    }

    /// Whether fields came later than the block.
    pub(super) fn is_added_to(&self) -> bool {
        self.values
            .iter()
            .any(|value| matches!(value.place, Place::Added { .. }))
    }

    /// The marker of what comes after the tail of that index.
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
            own: own::dimensions(&group.dimensions.kind, plans.types),
            each: String::new(),
            group,
            decoder,
            encoder,
            parent,
            entry,
        }
    }
}

/// What the plans of one message share.
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

    /// The type that says that something is next; the types of a group are called after it too.
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
    // What takes no bytes is as good anywhere, and may stand behind those that are there in every version, or that its sender
    // has.
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
