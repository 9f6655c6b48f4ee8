// SPDX-License-Identifier: Apache-2.0
//! Arguments of an interceptor: `key=value|key=value`.

use std::fmt;
use std::str::FromStr;

use taran_protocol::option::OptionId;

use crate::context::Conflict;

/// Parsed arguments of one interceptor.
#[derive(Debug)]
pub(super) struct Arguments {
    option: OptionId,
    text: String,
    pairs: Vec<(String, String)>,
}

impl Arguments {
    pub(super) fn read(option: OptionId, text: &str) -> Result<Self, Conflict> {
        let mut arguments = Self {
            option,
            text: text.to_owned(),
            pairs: Vec::new(),
        };
        for pair in text.split('|').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    arguments.pairs.push((key.to_owned(), value.to_owned()));
                }
                _ => {
                    return Err(arguments.conflict(format_args!(
                        "has {pair}, which is not key=value; pairs are separated by |"
                    )));
                }
            }
        }
        Ok(arguments)
    }

    /// Rejects unknown keys.
    pub(super) fn allow_only(&self, known: &[&str]) -> Result<(), Conflict> {
        match self
            .pairs
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            Some((key, _)) => Err(self.conflict(format_args!(
                "has an unknown key, {key}: known are {}",
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    /// Parses the value of a key; `None` if the key is absent. `needed` describes valid values, for the error text.
    pub(super) fn parse<T: FromStr>(&self, key: &str, needed: &str) -> Result<Option<T>, Conflict> {
        self.parse_with(key, needed, |text| text.parse().ok())
    }

    /// Like [`Self::parse`], with a custom parser.
    pub(super) fn parse_with<T>(
        &self,
        key: &str,
        needed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Conflict> {
        let Some((_, text)) = self.pairs.iter().rev().find(|(found, _)| found == key) else {
            return Ok(None);
        };
        match read(text) {
            Some(value) => Ok(Some(value)),
            None => Err(self.conflict(format_args!("has {key}={text}, which must be {needed}"))),
        }
    }

    pub(super) fn conflict(&self, needed: impl fmt::Display) -> Conflict {
        Conflict {
            option: self.option,
            value: self.text.clone(),
            needed: needed.to_string(),
        }
    }
}
