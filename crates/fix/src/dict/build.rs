// SPDX-License-Identifier: Apache-2.0
//! From the definitions of a file to a checked dictionary: references and components resolved.

use std::collections::HashMap;

use roxmltree::Node;

use super::xml::Problems;
use super::{Block, Dictionary, FieldDef, Kind, Member, MessageDef, Problem, ValueDef, Version};
use crate::wire::data_partner;

const MAX_MEMBERS: usize = 10_000;
/// Members of all messages and components together.
const MAX_TOTAL: usize = 4_000_000;
const MAX_COMPONENTS: usize = 32;
const MAX_GROUPS: usize = 8;

/// Member as it is written: references by key, which is a name or an id.
pub(super) struct RawMember<'node, 'text> {
    pub(super) node: Node<'node, 'text>,
    pub(super) required: bool,
    pub(super) what: Raw<'node, 'text>,
}

pub(super) enum Raw<'node, 'text> {
    Field(String),
    Component(String),
    Group(String, Vec<RawMember<'node, 'text>>),
}

pub(super) struct RawMessage<'node, 'text> {
    pub(super) node: Node<'node, 'text>,
    pub(super) name: String,
    pub(super) msg_type: String,
    pub(super) is_admin: bool,
    pub(super) body: Vec<RawMember<'node, 'text>>,
}

/// Definitions of a file.
pub(super) struct Definitions<'node, 'text> {
    pub(super) version: Version,
    pub(super) fields: HashMap<String, FieldDef>,
    pub(super) components: HashMap<String, Vec<RawMember<'node, 'text>>>,
    pub(super) header: Vec<RawMember<'node, 'text>>,
    pub(super) trailer: Vec<RawMember<'node, 'text>>,
    pub(super) messages: Vec<RawMessage<'node, 'text>>,
}

/// Adds a field, or reports that its key or tag is taken.
pub(super) fn add_field(
    fields: &mut HashMap<String, FieldDef>,
    tags: &mut HashMap<u32, String>,
    node: Node<'_, '_>,
    key: &str,
    mut field: FieldDef,
    problems: &mut Problems<'_>,
) {
    field.values.sort();
    field.values.dedup_by(|one, other| one.value == other.value);
    let kind = field.kind;
    for ValueDef { value, .. } in &field.values {
        let is_word = !value.is_empty() && !value.contains(' ');
        let is_valid = match kind {
            Kind::MultipleChar => value.len() == 1 && is_word,
            Kind::MultipleString => is_word,
            _ => kind.accepts(value.as_bytes()),
        };
        if !is_valid {
            problems.add(
                node,
                Problem::EnumType {
                    field: field.name.clone(),
                    value: value.clone(),
                    kind: kind.name(),
                },
            );
        }
    }
    let twice = |kind, name: &str| Problem::Twice {
        kind,
        name: name.to_owned(),
    };
    if fields.contains_key(key) {
        problems.add(node, twice("field", key));
    } else if let Some(other) = tags.insert(field.tag, field.name.clone()) {
        let name = format!("{} of {} and {other}", field.tag, field.name);
        problems.add(node, twice("tag", &name));
    } else {
        fields.insert(key.to_owned(), field);
    }
}

/// Pairs data fields with their length fields: by the name, the pairs of all versions, or the next tag.
pub(super) fn pair_data(
    fields: &mut HashMap<String, FieldDef>,
    nodes: &HashMap<u32, Node<'_, '_>>,
    problems: &mut Problems<'_>,
) {
    let lengths: HashMap<&str, u32> = fields
        .values()
        .filter(|field| field.kind == Kind::Length || field.kind == Kind::Int)
        .map(|field| (field.name.as_str(), field.tag))
        .collect();
    let is_length = |tag: u32| {
        fields
            .values()
            .any(|field| field.tag == tag && field.kind == Kind::Length)
    };
    let mut pairs = Vec::new();
    for field in fields.values().filter(|field| field.kind == Kind::Data) {
        if let Some(length) = field.partner {
            pairs.push((length, field.tag));
            continue;
        }
        let by_name = ["Len", "Length"]
            .iter()
            .find_map(|suffix| lengths.get(format!("{}{suffix}", field.name).as_str()));
        let known = || (1..2000).find(|length| data_partner(*length) == Some(field.tag));
        let before = || Some(field.tag - 1).filter(|tag| is_length(*tag));
        match by_name.copied().or_else(known).or_else(before) {
            Some(length) => pairs.push((length, field.tag)),
            None => {
                if let Some(node) = nodes.get(&field.tag) {
                    let name = field.name.clone();
                    let tag = field.tag;
                    problems.add(*node, Problem::NoLength { name, tag });
                }
            }
        }
    }
    let partners: HashMap<u32, u32> = pairs
        .iter()
        .flat_map(|(length, data)| [(*length, *data), (*data, *length)])
        .collect();
    for field in fields.values_mut() {
        field.partner = partners.get(&field.tag).copied();
    }
}

impl Definitions<'_, '_> {
    /// Resolves all references.
    pub(super) fn finish(self, root: Node<'_, '_>, problems: &mut Problems<'_>) -> Dictionary {
        let mut resolver = Resolver {
            fields: &self.fields,
            components: &self.components,
            problems,
            visited: 0,
            total: 0,
            stack: Vec::new(),
        };
        let header = resolver.top(root, "header", &self.header);
        let trailer = resolver.top(root, "trailer", &self.trailer);
        let mut messages: Vec<MessageDef> = Vec::new();
        let mut by_type = HashMap::new();
        for message in &self.messages {
            let body = resolver.top(message.node, &message.name, &message.body);
            let key = message.msg_type.as_bytes().to_vec();
            let is_name_taken = messages.iter().any(|other| other.name == message.name);
            if is_name_taken || by_type.insert(key, messages.len()).is_some() {
                let name = format!("{} ({})", message.name, message.msg_type);
                let kind = "message";
                resolver
                    .problems
                    .add(message.node, Problem::Twice { kind, name });
                continue;
            }
            messages.push(MessageDef {
                name: message.name.clone(),
                msg_type: message.msg_type.clone(),
                is_admin: message.is_admin,
                body,
            });
        }
        // Components that no message uses are checked, too.
        let mut names: Vec<&String> = self.components.keys().collect();
        names.sort_unstable();
        for name in names {
            resolver.top(root, name, &self.components[name]);
        }
        let mut fields: Vec<FieldDef> = self.fields.into_values().collect();
        fields.sort_by_key(FieldDef::tag);
        Dictionary {
            version: self.version,
            fields,
            header,
            trailer,
            messages,
            by_type,
            warnings: problems.take_warnings(),
        }
    }
}

struct Resolver<'definitions, 'node, 'text, 'problems, 'file> {
    fields: &'definitions HashMap<String, FieldDef>,
    components: &'definitions HashMap<String, Vec<RawMember<'node, 'text>>>,
    problems: &'problems mut Problems<'file>,
    /// Number of members seen in this message.
    visited: usize,
    /// Number of members seen in all messages.
    total: usize,
    /// Keys of the components that are being resolved.
    stack: Vec<&'definitions str>,
}

impl<'definitions, 'node, 'text> Resolver<'definitions, 'node, 'text, '_, '_> {
    fn top(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
        raw: &'definitions [RawMember<'node, 'text>],
    ) -> Block {
        self.visited = 0;
        self.stack.clear();
        self.block(node, name, raw, 0).unwrap_or_default()
    }

    fn block(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
        raw: &'definitions [RawMember<'node, 'text>],
        groups: usize,
    ) -> Option<Block> {
        let mut members = Vec::new();
        self.extend(name, raw, true, groups, &mut members)?;
        let members = self.once(node, name, members);
        match Block::new(members) {
            Ok(block) => Some(block),
            Err(tag) => {
                let scope = name.to_owned();
                self.problems.add(node, Problem::Duplicate { tag, scope });
                None
            }
        }
    }

    /// Merges fields that occur twice, which well-known dictionaries have.
    fn once(&mut self, node: Node<'_, '_>, name: &str, members: Vec<Member>) -> Vec<Member> {
        let mut kept: Vec<Member> = Vec::with_capacity(members.len());
        let mut places: HashMap<u32, usize> = HashMap::new();
        for member in members {
            match places.get(&member.tag).map(|place| &mut kept[*place]) {
                Some(first) if first.group.is_none() && member.group.is_none() => {
                    first.required |= member.required;
                    let scope = name.to_owned();
                    let tag = member.tag;
                    self.problems.warn(node, Problem::Duplicate { tag, scope });
                }
                _ => {
                    places.insert(member.tag, kept.len());
                    kept.push(member);
                }
            }
        }
        kept
    }

    /// Appends the members; returns nothing if the rest of the message makes no sense.
    fn extend(
        &mut self,
        scope: &str,
        raw: &'definitions [RawMember<'node, 'text>],
        required: bool,
        groups: usize,
        members: &mut Vec<Member>,
    ) -> Option<()> {
        for member in raw {
            self.visited += 1;
            self.total += 1;
            let is_too_deep = groups > MAX_GROUPS || self.stack.len() > MAX_COMPONENTS;
            if self.visited > MAX_MEMBERS || self.total > MAX_TOTAL || is_too_deep {
                let problem = Problem::TooLarge(scope.to_owned());
                self.problems.add(member.node, problem);
                return None;
            }
            let required = required && member.required;
            match &member.what {
                Raw::Field(key) => {
                    if let Some(tag) = self.tag(member.node, key) {
                        members.push(Member {
                            tag,
                            required,
                            group: None,
                        });
                    }
                }
                Raw::Component(key) => {
                    self.component(scope, member, key, required, groups, members)?;
                }
                Raw::Group(key, entries) => {
                    let tag = self.tag(member.node, key);
                    let block = self.block(member.node, key, entries, groups + 1)?;
                    if block.members().is_empty() {
                        let problem = Problem::EmptyGroup(key.clone());
                        self.problems.add(member.node, problem);
                    }
                    if let Some(tag) = tag {
                        members.push(Member {
                            tag,
                            required,
                            group: Some(block),
                        });
                    }
                }
            }
        }
        Some(())
    }

    fn component(
        &mut self,
        scope: &str,
        member: &RawMember<'node, 'text>,
        key: &str,
        required: bool,
        groups: usize,
        members: &mut Vec<Member>,
    ) -> Option<()> {
        let Some((key, raw)) = self.components.get_key_value(key) else {
            let name = key.to_owned();
            let kind = "component";
            self.problems
                .add(member.node, Problem::Undefined { kind, name });
            return Some(());
        };
        if self.stack.contains(&key.as_str()) {
            self.problems.add(member.node, Problem::Cycle(key.clone()));
            return None;
        }
        self.stack.push(key);
        let done = self.extend(scope, raw, required, groups, members);
        self.stack.pop();
        done
    }

    fn tag(&mut self, node: Node<'_, '_>, key: &str) -> Option<u32> {
        let field = self.fields.get(key);
        if field.is_none() {
            let name = key.to_owned();
            let kind = "field";
            self.problems.add(node, Problem::Undefined { kind, name });
        }
        field.map(|field| field.tag)
    }
}
