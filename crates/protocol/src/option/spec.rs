//! The declaration of one option.

use super::kind::{Kind, Value};
use super::table::OptionId;

/// Who reads an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The media driver.
    Driver,
    /// A client.
    Client,
    /// Both.
    Both,
}

/// Whether an option does what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Supported,
    /// The option is known, and any value but its default is an error, for this reason.
    Fixed(&'static str),
}

/// Everything known about an option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Which one it is.
    pub id: OptionId,
    /// Who reads it.
    pub scope: Scope,
    /// The name in property files and behind `-D`.
    pub property: &'static str,
    /// The environment variable.
    pub variable: &'static str,
    /// Form and range of its value.
    pub kind: Kind,
    /// The text of its default; empty = unset.
    pub default: &'static str,
    /// Whether it does what it says.
    pub status: Status,
    /// One line of help.
    pub help: &'static str,
}

impl OptionSpec {
    /// The default as a value.
    pub(super) fn default_value(&self) -> Value {
        if self.default.is_empty() {
            return Value::Unset;
        }
        // A test reads the default of every option, so the text is never refused.
        self.kind.parse(self.default).unwrap_or(Value::Unset)
    }
}

/// The options a media driver reads, in the order of the documentation.
pub fn driver_options() -> impl Iterator<Item = &'static OptionSpec> {
    options_of(Scope::Driver)
}

/// The options a client reads, in the order of the documentation.
pub fn client_options() -> impl Iterator<Item = &'static OptionSpec> {
    options_of(Scope::Client)
}

pub(super) fn options_of(scope: Scope) -> impl Iterator<Item = &'static OptionSpec> {
    OptionId::ALL
        .iter()
        .filter(move |spec| spec.scope == scope || spec.scope == Scope::Both)
}
