// SPDX-License-Identifier: Apache-2.0
//! Kinds of options: parsing, ranges and formatting of values.

use std::borrow::Cow;
use std::fmt;

use taran_core::idle::IdleSpec;

use crate::event::{ArchiveEventSet, EventSet};
use crate::uri::value::{
    Requirement, format_duration_ns, format_size, parse_duration_ns, parse_i64, parse_size,
};

/// Additional constraint on a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any number of bytes.
    Any,
    /// A power of two.
    PowerOfTwo,
    /// A power of two plus this number of bytes: a message buffer and its trailer.
    PowerOfTwoAnd(i64),
    /// A multiple of this number.
    MultipleOf(i64),
}

/// Valid text of an option.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Text.
    pub name: &'static str,
    /// Equivalent texts: names of functions and classes of the official drivers.
    pub aliases: &'static [&'static str],
}

/// Kind of an option value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`; also `1`, `on`, `0`, `off`.
    Bool,
    /// A size in bytes.
    Size {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
        /// Additional constraint.
        form: Form,
    },
    /// A duration in nanoseconds. Lower values are raised to the minimum, unless they have no unit: most such numbers are
    /// meant as milliseconds or seconds.
    Duration {
        /// Minimum in nanoseconds.
        min: i64,
    },
    /// A number of milliseconds without a unit.
    Millis,
    /// An integer.
    Int {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// Any text.
    Text {
        /// Maximum length in bytes.
        max: usize,
    },
    /// One of a fixed set of texts.
    Choice(&'static [Choice]),
    /// The name of an idle strategy.
    Idle,
    /// `low high`, two port numbers.
    Ports,
    /// A core number, −1 for none, or `auto`.
    Affinity,
    /// A selection of events of a driver.
    Events,
    /// A selection of events of an archive.
    ArchiveEvents,
}

/// Core that a thread is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// No binding.
    None,
    /// A core not used by another bound thread, if the process may use more cores than it binds threads; otherwise
    /// none.
    Auto,
    /// The core with this number.
    Core(usize),
}

/// Parsed value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Unset,
    /// A boolean.
    Bool(bool),
    /// An integer, a size, or a duration in nanoseconds.
    Int(i64),
    /// A text.
    Text(String),
    /// A choice.
    Choice(&'static str),
    /// A port range, inclusive.
    Ports(u16, u16),
    /// A core.
    Affinity(Affinity),
}

const MAX_CORE: i64 = 1023;

impl Kind {
    /// Parses a text.
    pub(super) fn parse(&self, text: &str) -> Result<Value, InvalidValue> {
        match *self {
            Kind::Bool => match text {
                "true" | "1" | "on" => Ok(Value::Bool(true)),
                "false" | "0" | "off" => Ok(Value::Bool(false)),
                _ => Err(InvalidValue::Malformed),
            },
            Kind::Size { min, max, form } => match parse_size(text)? {
                n if (min..=max).contains(&n) && form.admits(n) => Ok(Value::Int(n)),
                _ => Err(InvalidValue::OutOfRange),
            },
            Kind::Duration { min } => {
                let nanos = parse_duration_ns(text)?;
                let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
                if is_bare && nanos > 0 && nanos < min {
                    return Err(InvalidValue::WithoutUnit);
                }
                Ok(Value::Int(nanos.max(min)))
            }
            Kind::Millis => match parse_i64(text)? {
                n if n >= 0 => Ok(Value::Int(n)),
                _ => Err(InvalidValue::OutOfRange),
            },
            Kind::Int { min, max } => match parse_i64(text)? {
                n if (min..=max).contains(&n) => Ok(Value::Int(n)),
                _ => Err(InvalidValue::OutOfRange),
            },
            Kind::Text { max } if text.len() > max => Err(InvalidValue::OutOfRange),
            Kind::Text { .. } => Ok(Value::Text(text.to_owned())),
            Kind::Choice(choices) => {
                let choice = choices
                    .iter()
                    .find(|c| c.name == text || c.aliases.contains(&text))
                    .ok_or(InvalidValue::Malformed)?;
                Ok(Value::Choice(choice.name))
            }
            Kind::Idle => match IdleSpec::parse(text, None) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(InvalidValue::Malformed),
            },
            Kind::Ports => parse_ports(text),
            Kind::Affinity => parse_affinity(text),
            Kind::Events => match EventSet::parse(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(InvalidValue::Malformed),
            },
            Kind::ArchiveEvents => match ArchiveEventSet::parse(text) {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(InvalidValue::Malformed),
            },
        }
    }

    /// Returns a description of the valid values that completes a sentence after "needs".
    #[must_use]
    pub fn requirement(&self) -> Cow<'static, str> {
        match *self {
            Kind::Bool => "true or false".into(),
            Kind::Size { min, max, form } => {
                let (min, max) = (format_size(min), format_limit(max, format_size));
                match form {
                    Form::Any => format!("a size in {min}..{max}"),
                    Form::PowerOfTwo => format!("a power of two in {min}..{max}"),
                    Form::PowerOfTwoAnd(more) => {
                        format!("a power of two plus {more}, at least {min}")
                    }
                    Form::MultipleOf(step) => format!("a multiple of {step} in {min}..{max}"),
                }
                .into()
            }
            Kind::Duration { .. } => "a duration such as 100ms: digits with ns, us, ms or s".into(),
            Kind::Millis => "a number of milliseconds without a unit".into(),
            Kind::Int { min, max } => format!("a number in {min}..{max}").into(),
            Kind::Text { max } => format!("a text of at most {max} bytes").into(),
            Kind::Choice(choices) => {
                let names: Vec<&str> = choices.iter().map(|c| c.name).collect();
                format!("one of {}", names.join(", ")).into()
            }
            Kind::Idle => {
                "an idle strategy: adaptive, noop, spin, yield, sleep-ns, sleep-ms, backoff or controllable"
                    .into()
            }
            Kind::Ports => "two ports 'low high', or '0 0' for any".into(),
            Kind::Affinity => format!("a core in 0..{MAX_CORE}, -1 for none, or auto").into(),
            Kind::Events => {
                "events separated by commas: names such as CMD_IN_ADD_PUBLICATION, numbers, all or admin"
                    .into()
            }
            Kind::ArchiveEvents => {
                "events separated by commas: names such as CMD_IN_REPLAY, numbers, or all".into()
            }
        }
    }

    /// Formats a value as a text that parses to the same value; empty for no value.
    #[must_use]
    pub fn format(&self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Unset) => String::new(),
            (_, Value::Bool(b)) => b.to_string(),
            (Kind::Size { .. }, Value::Int(n)) => format_size(*n),
            (Kind::Duration { .. }, Value::Int(n)) => format_duration_ns(*n),
            (_, Value::Int(n)) => n.to_string(),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Choice(name)) => (*name).to_owned(),
            (_, Value::Ports(low, high)) => format!("{low} {high}"),
            (_, Value::Affinity(affinity)) => affinity.to_string(),
        }
    }
}

fn format_limit(max: i64, format: fn(i64) -> String) -> String {
    if max == i64::MAX {
        String::new()
    } else {
        format(max)
    }
}

impl Form {
    fn admits(self, n: i64) -> bool {
        match self {
            Form::Any => true,
            Form::PowerOfTwo => n > 0 && n.count_ones() == 1,
            Form::PowerOfTwoAnd(more) => n > more && (n - more).count_ones() == 1,
            Form::MultipleOf(step) => n % step == 0,
        }
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Affinity::None => f.write_str("-1"),
            Affinity::Auto => f.write_str("auto"),
            Affinity::Core(core) => write!(f, "{core}"),
        }
    }
}

/// Reason why a text is not a value of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidValue {
    Malformed,
    OutOfRange,
    WithoutUnit,
}

impl From<Requirement> for InvalidValue {
    fn from(_: Requirement) -> Self {
        InvalidValue::Malformed
    }
}

fn parse_ports(text: &str) -> Result<Value, InvalidValue> {
    let mut ports = text.split_whitespace().map(str::parse::<u16>);
    match (ports.next(), ports.next(), ports.next()) {
        (Some(Ok(low)), Some(Ok(high)), None) if low <= high => Ok(Value::Ports(low, high)),
        (Some(Ok(_)), Some(Ok(_)), None) => Err(InvalidValue::OutOfRange),
        _ => Err(InvalidValue::Malformed),
    }
}

fn parse_affinity(text: &str) -> Result<Value, InvalidValue> {
    if text == "auto" {
        return Ok(Value::Affinity(Affinity::Auto));
    }
    match parse_i64(text)? {
        -1 => Ok(Value::Affinity(Affinity::None)),
        core @ 0..=MAX_CORE => Ok(Value::Affinity(Affinity::Core(core as usize))),
        _ => Err(InvalidValue::OutOfRange),
    }
}

#[cfg(test)]
mod tests;
