//! The values of all options, and where each came from.

use super::error::{OptionError, OptionErrors, Problem};
use super::kind::{InvalidValue, Value};
use super::layers::Source;
use super::names::{self, UnknownOption};
use super::profile::Profile;
use super::spec::{OptionSpec, Scope, Status, options_of};
use super::table::OptionId;

/// The values of all options of a driver or a client.
#[derive(Clone, Debug)]
pub struct OptionSet {
    scope: Scope,
    profile: Profile,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Value,
    /// Where the value came from.
    source: Source,
    /// Whether the value is the profile's or the default, and changes with the profile.
    fallback: bool,
    /// Sources weaker than this have no say.
    strength: u8,
}

/// An option, its value as text, and where that came from.
#[derive(Clone, Debug)]
pub struct Explained<'a> {
    /// The declaration.
    pub option: &'static OptionSpec,
    /// The value, empty if there is none.
    pub value: String,
    /// Where it came from.
    pub source: &'a Source,
}

impl OptionSet {
    /// The options of a media driver, with the values of the default profile.
    #[must_use]
    pub fn driver() -> Self {
        Self::new(Scope::Driver)
    }

    /// The options of a client, with their defaults.
    #[must_use]
    pub fn client() -> Self {
        Self::new(Scope::Client)
    }

    fn new(scope: Scope) -> Self {
        let profile = Profile::default();
        OptionSet {
            scope,
            profile,
            entries: OptionId::ALL
                .iter()
                .map(|spec| Entry::fallback(spec, profile, 0))
                .collect(),
        }
    }

    /// Takes over names and values from one source. Names may be properties or variables; from the environment only
    /// variables are taken, so that `std::env::vars()` can be passed as it is. Options of other components, and those
    /// that only the other of driver and client reads, are passed over.
    ///
    /// An empty value takes an option back to the profile's value or the default. Of names that are given repeatedly the
    /// last counts. Returned are the names that look like mistakes; from the environment only those that are nearly
    /// certain to be.
    ///
    /// # Errors
    /// One error for each value that was refused. The other values have been taken over.
    pub fn apply<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        source: &Source,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Vec<UnknownOption>, OptionErrors> {
        let mut unknown = Vec::new();
        let mut errors = Vec::new();
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            if *source == Source::Environment
                && !(name.starts_with("AERON_") || name.starts_with("TARAN_"))
            {
                continue;
            }
            match names::find(name) {
                Some(spec) if self.is_in_scope(spec) => {
                    if let Err(error) = self.set(spec.id, value, source) {
                        errors.push(error);
                    }
                }
                Some(_) => {}
                None => unknown.extend(names::unknown(name, source)),
            }
        }
        if errors.is_empty() {
            Ok(unknown)
        } else {
            Err(OptionErrors(errors))
        }
    }

    /// Sets one option to a text; an empty text takes it back to the profile's value or the default.
    ///
    /// Nothing happens if the present value comes from a stronger source.
    ///
    /// # Errors
    /// The text is no value of the option, out of its range, or it is an option that has its default only.
    pub fn set(&mut self, id: OptionId, text: &str, source: &Source) -> Result<(), OptionError> {
        let spec = id.spec();
        let entry = if text.is_empty() {
            Entry::fallback(spec, self.profile, source.strength())
        } else {
            let value = read(spec, text).map_err(|problem| OptionError {
                option: spec,
                value: text.to_owned(),
                source: source.clone(),
                problem,
            })?;
            Entry {
                value,
                strength: source.strength(),
                source: source.clone(),
                fallback: false,
            }
        };
        let present = &mut self.entries[id as usize];
        if entry.strength < present.strength {
            return Ok(());
        }
        *present = entry;
        if id == OptionId::Profile {
            self.apply_profile();
        }
        Ok(())
    }

    /// Lets `aeron.debug.timeout`, if it is set, replace the timeouts after which clients and drivers count as dead: for a
    /// process in which a debugger stops time. Returns the options that it changed, with what they were before.
    pub fn use_debug_timeout(&mut self) -> Vec<(OptionId, String)> {
        let Some(timeout_ns) = self.debug_timeout_ns() else {
            return Vec::new();
        };
        let replaced = [
            (OptionId::DriverTimeout, timeout_ns / 1_000_000),
            (OptionId::ClientLivenessTimeout, timeout_ns),
            // Which has to be longer than that of clients.
            (
                OptionId::PublicationUnblockTimeout,
                timeout_ns.saturating_add(timeout_ns / 2),
            ),
        ];
        let mut changed = Vec::new();
        for (id, value) in replaced {
            if !self.is_in_scope(id.spec()) {
                continue;
            }
            changed.push((id, self.text(id)));
            let source = self.source(OptionId::DebugTimeout).clone();
            let entry = &mut self.entries[id as usize];
            entry.value = Value::Int(value);
            entry.source = source;
            entry.fallback = false;
        }
        changed
    }

    fn apply_profile(&mut self) {
        self.profile = Profile::parse(self.profile_name()).unwrap_or_default();
        for (entry, spec) in self.entries.iter_mut().zip(OptionId::ALL) {
            if entry.fallback {
                *entry = Entry::fallback(spec, self.profile, entry.strength);
            }
        }
    }

    fn is_in_scope(&self, spec: &OptionSpec) -> bool {
        spec.scope == self.scope || spec.scope == Scope::Both
    }

    /// The value of an option.
    #[must_use]
    pub fn value(&self, id: OptionId) -> &Value {
        &self.entries[id as usize].value
    }

    /// Where the value of an option came from.
    #[must_use]
    pub fn source(&self, id: OptionId) -> &Source {
        &self.entries[id as usize].source
    }

    /// The value of an option as a text that can be read again; empty if there is none.
    #[must_use]
    pub fn text(&self, id: OptionId) -> String {
        id.spec().kind.format(self.value(id))
    }

    /// The profile in force.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// All options with their values and sources, in the order of the documentation.
    pub fn explain(&self) -> impl Iterator<Item = Explained<'_>> {
        options_of(self.scope).map(|option| Explained {
            option,
            value: self.text(option.id),
            source: self.source(option.id),
        })
    }

    pub(super) fn integer(&self, id: OptionId) -> Option<i64> {
        match self.value(id) {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }
}

impl Entry {
    /// What holds when no source says anything.
    fn fallback(spec: &OptionSpec, profile: Profile, strength: u8) -> Self {
        let from_profile = profile
            .options()
            .iter()
            .find(|(id, _)| *id == spec.id)
            // A test reads the options of every profile, so they are never refused.
            .and_then(|(_, text)| read(spec, text).ok());
        let (value, source) = match from_profile {
            Some(value) => (value, Source::Profile(profile)),
            None => (spec.default_value(), Source::Default),
        };
        Entry {
            value,
            source,
            fallback: true,
            strength,
        }
    }
}

fn read(spec: &OptionSpec, text: &str) -> Result<Value, Problem> {
    let value = spec.kind.parse(text);
    if let Status::Fixed(reason) = spec.status {
        // What is no value at all is called that.
        return match value {
            Ok(value) if value == spec.default_value() => Ok(value),
            Ok(_) | Err(InvalidValue::OutOfRange) => Err(Problem::Fixed(reason)),
            Err(InvalidValue::Malformed) => Err(Problem::Malformed),
        };
    }
    value.map_err(|refusal| match refusal {
        InvalidValue::Malformed => Problem::Malformed,
        InvalidValue::OutOfRange => Problem::OutOfRange,
    })
}

#[cfg(test)]
mod tests;
