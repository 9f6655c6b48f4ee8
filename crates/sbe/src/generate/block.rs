//! A block of a message or of a group's entries, with everything that the Rust for it needs to know.

use super::Collision;
use super::names::{self, Scope};
use super::own;
use super::value::{Place, Value};
use crate::model::{self, Data, Field, Group, Position, TypeKind};

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
    pub(super) entry: Plan<'a>,
    /// The version before which entries have nothing: no fields, and what is behind them came later.
    pub(super) empty_before: Option<u32>,
    /// The type of its dimensions, where they have more than the standard asks for.
    pub(super) own: Option<String>,
}

/// The marker of where everything has been read or written.
pub(super) const DONE: &str = "Done";

impl<'a> Plan<'a> {
    pub(super) fn message(message: &'a model::Message, plans: &mut Plans<'_>) -> Self {
        let name = names::kind(&message.name);
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
        plans.kind(&plan.decoder, &message.name, &message.position);
        plans.kind(&plan.encoder, &message.name, &message.position);
        plan.fill(&message.block, message.since, "", plans);
        plan
    }

    fn fill(&mut self, block: &'a model::Block, since: u32, prefix: &str, plans: &mut Plans<'_>) {
        let mut methods = Scope::default();
        self.fixed = block
            .fields
            .iter()
            .filter(|field| field.since <= since)
            .map(|field| field.offset + field.encoded_length())
            .max()
            .unwrap_or(0);
        for field in &block.fields {
            let method = names::method(&field.name);
            methods.take(&method, &field.name, &field.position, plans.collisions);
            self.values.push(value(field, method, since, self.fixed));
        }
        let groups = block
            .groups
            .iter()
            .map(|group| (group.name.as_str(), Ok(group)));
        let data = block
            .data
            .iter()
            .map(|data| (data.name.as_str(), Err(data)));
        let all: Vec<(&'a str, Result<&'a Group, &'a Data>)> = groups.chain(data).collect();
        let markers: Vec<String> = all
            .iter()
            .map(|(name, _)| format!("{prefix}{}", names::kind(name)))
            .chain([DONE.to_owned()])
            .collect();
        for ((name, what), at) in all.into_iter().zip(markers.windows(2)) {
            let [marker, next] = at else { continue };
            let position = match what {
                Ok(group) => &group.position,
                Err(data) => &data.position,
            };
            let method = names::method(name);
            methods.take(&method, name, position, plans.collisions);
            plans.markers.take(marker, name, position, plans.collisions);
            let (description, deprecated, own) = match what {
                Ok(group) => (&group.description, group.deprecated, group.since),
                Err(data) => (&data.description, data.deprecated, data.since),
            };
            let kind = match what {
                Ok(group) => {
                    let after = format!("{}<'a, at::{next}>", self.encoder);
                    let plan = GroupPlan::new(group, since, marker, after, plans);
                    if plan.entry.has_tails() {
                        let each = format!("each_{method}");
                        methods.take(&each, name, position, plans.collisions);
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
        plans: &mut Plans<'_>,
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
        for kind in [&decoder, &encoder, &entry.decoder, &entry.encoder] {
            plans.kind(kind, &group.name, &group.position);
        }
        entry.fill(&group.block, since, name, plans);
        let came: Option<Vec<u32>> = entry.tails.iter().map(|tail| tail.since).collect();
        let came = came.filter(|_| entry.fixed == 0);
        Self {
            empty_before: came.and_then(|came| came.into_iter().min()),
            own: own::dimensions(&group.dimensions.kind),
            group,
            decoder,
            encoder,
            parent,
            entry,
        }
    }
}

/// What the plans of one message share.
pub(super) struct Plans<'a> {
    kinds: Scope,
    markers: Scope,
    collisions: &'a mut Vec<Collision>,
}

impl<'a> Plans<'a> {
    pub(super) fn new(collisions: &'a mut Vec<Collision>) -> Self {
        Self {
            kinds: Scope::default(),
            markers: Scope::default(),
            collisions,
        }
    }

    fn kind(&mut self, identifier: &str, original: &str, position: &Position) {
        self.kinds
            .take(identifier, original, position, self.collisions);
    }
}

fn value(field: &Field, method: String, since: u32, fixed: u32) -> Value<'_> {
    let place = if field.since <= since {
        Place::Fixed
    } else if field.offset >= fixed {
        Place::Added {
            since: field.since,
            at: field.offset - fixed,
        }
    } else {
        Place::FixedSince(field.since)
    };
    Value {
        name: &field.name,
        method,
        description: field.description.as_deref(),
        deprecated: field.deprecated,
        kind: &field.kind,
        path: match &field.kind.kind {
            TypeKind::Simple(_) => String::new(),
            _ => format!("types::{}", names::kind(&field.kind.name)),
        },
        presence: field.presence,
        constant: field.constant.as_ref(),
        value_ref: field.value_ref.as_ref(),
        offset: field.offset,
        place,
    }
}
