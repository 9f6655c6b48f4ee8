// SPDX-License-Identifier: Apache-2.0
//! Dictionary of one version of FIX.

use std::collections::HashMap;
use std::fmt;

use super::{Block, Diagnostic, Kind};

/// Protocol of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// FIX: application messages, up to 4.4 with the session layer.
    Fix,
    /// FIXT: the session layer since 5.0.
    Fixt,
}

/// Version of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// Protocol.
    pub protocol: Protocol,
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
    /// Service pack.
    pub service_pack: u8,
}

impl Version {
    /// Returns the BeginString of the version. FIX 5.0 and later are carried by FIXT 1.1.
    #[must_use]
    pub fn begin_string(self) -> String {
        if self.is_over_fixt() {
            return "FIXT.1.1".to_owned();
        }
        let protocol = match self.protocol {
            Protocol::Fix => "FIX",
            Protocol::Fixt => "FIXT",
        };
        format!("{protocol}.{}.{}", self.major, self.minor)
    }

    /// Returns true if sessions of this version need the dictionary of FIXT 1.1 besides.
    #[must_use]
    pub const fn is_over_fixt(self) -> bool {
        matches!(self.protocol, Protocol::Fix) && self.major >= 5
    }

    /// Returns the value of ApplVerID for this version.
    #[must_use]
    pub const fn appl_ver_id(self) -> Option<&'static str> {
        match (self.protocol, self.major, self.minor, self.service_pack) {
            (Protocol::Fix, 4, 0, _) => Some("2"),
            (Protocol::Fix, 4, 1, _) => Some("3"),
            (Protocol::Fix, 4, 2, _) => Some("4"),
            (Protocol::Fix, 4, 3, _) => Some("5"),
            (Protocol::Fix, 4, 4, _) => Some("6"),
            (Protocol::Fix, 5, 0, 0) => Some("7"),
            (Protocol::Fix, 5, 0, 1) => Some("8"),
            (Protocol::Fix, 5, 0, 2) => Some("9"),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Fix => "FIX",
            Protocol::Fixt => "FIXT",
        };
        write!(formatter, "{protocol} {}.{}", self.major, self.minor)?;
        if self.service_pack > 0 {
            write!(formatter, " SP{}", self.service_pack)?;
        }
        Ok(())
    }
}

/// Allowed value of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueDef {
    pub(super) value: String,
    pub(super) name: String,
}

impl ValueDef {
    /// Returns the value as it is written in messages.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDef {
    pub(super) tag: u32,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Sorted by value.
    pub(super) values: Vec<ValueDef>,
    pub(super) is_open: bool,
    pub(super) partner: Option<u32>,
}

impl FieldDef {
    /// Returns the tag.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the data type.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the set of values, sorted; empty if any value is allowed.
    #[must_use]
    pub fn values(&self) -> &[ValueDef] {
        &self.values
    }

    /// Returns true if values outside of the set are allowed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the tag of the data field for a length field, and of the length field for a data field.
    #[must_use]
    pub const fn partner(&self) -> Option<u32> {
        self.partner
    }

    /// Returns the name of a value.
    #[must_use]
    pub fn value_name(&self, value: &[u8]) -> Option<&str> {
        let found = self
            .values
            .binary_search_by(|known| known.value.as_bytes().cmp(value));
        found.ok().map(|at| self.values[at].name.as_str())
    }

    /// Returns true if the set allows the value; for lists, all its words.
    #[must_use]
    pub fn allows(&self, value: &[u8]) -> bool {
        if self.values.is_empty() || self.is_open {
            return true;
        }
        if self.kind.is_list() {
            return super::kind::words(value).all(|word| self.value_name(word).is_some());
        }
        self.value_name(value).is_some()
    }
}

/// Message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDef {
    pub(super) name: String,
    pub(super) msg_type: String,
    pub(super) is_admin: bool,
    pub(super) body: Block,
}

impl MessageDef {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of MsgType.
    #[must_use]
    pub fn msg_type(&self) -> &str {
        &self.msg_type
    }

    /// Returns true for messages of the session layer.
    #[must_use]
    pub const fn is_admin(&self) -> bool {
        self.is_admin
    }

    /// Returns the members of the body.
    #[must_use]
    pub const fn body(&self) -> &Block {
        &self.body
    }
}

/// Fields, header, trailer and messages of one version, with components resolved.
///
/// Readers make dictionaries and check them: each tag of a block has a field, each data field has a length field, and
/// no tag occurs twice in a scope.
#[derive(Debug, Clone)]
pub struct Dictionary {
    pub(super) version: Version,
    /// Sorted by tag.
    pub(super) fields: Vec<FieldDef>,
    pub(super) header: Block,
    pub(super) trailer: Block,
    pub(super) messages: Vec<MessageDef>,
    pub(super) by_type: HashMap<Vec<u8>, usize>,
    pub(super) warnings: Vec<Diagnostic>,
}

impl Dictionary {
    /// Returns the version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the problems of the file that do not prevent its use: fields that occur twice in one scope count once.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns all fields, sorted by tag.
    #[must_use]
    pub fn fields(&self) -> &[FieldDef] {
        &self.fields
    }

    /// Returns the field with this tag.
    #[must_use]
    pub fn field(&self, tag: u32) -> Option<&FieldDef> {
        let found = self.fields.binary_search_by_key(&tag, |field| field.tag);
        found.ok().map(|at| &self.fields[at])
    }

    /// Returns the members of the header.
    #[must_use]
    pub const fn header(&self) -> &Block {
        &self.header
    }

    /// Returns the members of the trailer.
    #[must_use]
    pub const fn trailer(&self) -> &Block {
        &self.trailer
    }

    /// Returns all messages in the order of their definition.
    #[must_use]
    pub fn messages(&self) -> &[MessageDef] {
        &self.messages
    }

    /// Returns the message with this MsgType.
    #[must_use]
    pub fn message(&self, msg_type: &[u8]) -> Option<&MessageDef> {
        self.by_type.get(msg_type).map(|at| &self.messages[*at])
    }

    /// Returns this dictionary with header, trailer, and the fields and messages that only the session layer has:
    /// FIX 5.0 and later over FIXT 1.1.
    #[must_use]
    pub fn over(mut self, transport: &Self) -> Self {
        self.header = transport.header.clone();
        self.trailer = transport.trailer.clone();
        for field in &transport.fields {
            if let Err(at) = self.fields.binary_search_by_key(&field.tag, FieldDef::tag) {
                self.fields.insert(at, field.clone());
            }
        }
        for message in &transport.messages {
            let key = message.msg_type.as_bytes();
            if self.by_type.contains_key(key) {
                continue;
            }
            self.by_type.insert(key.to_vec(), self.messages.len());
            self.messages.push(message.clone());
        }
        self
    }
}
