// SPDX-License-Identifier: Apache-2.0
//! Values of all options and their sources.

use super::error::{OptionError, OptionErrors, Problem};
use super::kind::{InvalidValue, Value};
use super::layers::Source;
use super::names::{self, UnknownOption};
use super::profile::Profile;
use super::spec::{OptionSpec, Scope, Status, options_of};
use super::table::OptionId;

/// Values of all options of a driver, client, archive, or part of a cluster.
#[derive(Clone, Debug)]
pub struct OptionSet {
    scope: Scope,
    profile: Profile,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Value,
    /// Source of the value.
    source: Source,
    /// True if the value is the default or that of the profile, so that it changes with the profile.
    fallback: bool,
    /// Precedence of the value: weaker sources do not replace it.
    strength: u8,
}

/// Option with its value as text and the source of the value.
#[derive(Clone, Debug)]
pub struct Explained<'a> {
    /// Declaration.
    pub option: &'static OptionSpec,
    /// Value; empty if unset.
    pub value: String,
    /// Source of the value.
    pub source: &'a Source,
}

impl OptionSet {
    /// Returns the options of a media driver, with the values of the default profile.
    #[must_use]
    pub fn driver() -> Self {
        Self::new(Scope::Driver)
    }

    /// Returns the options of a client, with their defaults.
    #[must_use]
    pub fn client() -> Self {
        Self::new(Scope::Client)
    }

    /// Returns the options of an archive, with their defaults.
    #[must_use]
    pub fn archive() -> Self {
        Self::new(Scope::Archive)
    }

    /// Returns the options of a consensus module, with their defaults.
    #[must_use]
    pub fn cluster() -> Self {
        Self::new(Scope::Cluster)
    }

    /// Returns the options of a container of a service of a cluster, with their defaults.
    #[must_use]
    pub fn container() -> Self {
        Self::new(Scope::Container)
    }

    /// Returns the options of a client of a cluster, with their defaults.
    #[must_use]
    pub fn cluster_client() -> Self {
        Self::new(Scope::ClusterClient)
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

    /// Applies names and values from one source. Names may be properties or variables; from the environment only
    /// variables are accepted, so that `std::env::vars()` can be passed unfiltered. Options of other components and
    /// options outside the scope of this set are ignored.
    ///
    /// An empty value resets an option to the value of the profile or the default. If a name is repeated, the last
    /// value applies. Returns the unknown names that are likely typing mistakes; for the environment, only those that
    /// are almost certain.
    ///
    /// # Errors
    /// One error per invalid value. The valid values are applied.
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
                None => unknown.extend(names::unknown(name, source, self.scope)),
            }
        }
        if errors.is_empty() {
            Ok(unknown)
        } else {
            Err(OptionErrors(errors))
        }
    }

    /// Sets one option from a text. An empty text resets it to the value of the profile or the default. Has no effect
    /// if the current value comes from a stronger source.
    ///
    /// # Errors
    /// The text is malformed or out of range, or the option accepts only its default.
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
        let current = &mut self.entries[id as usize];
        if entry.strength < current.strength {
            return Ok(());
        }
        *current = entry;
        if id == OptionId::Profile {
            self.apply_profile();
        }
        Ok(())
    }

    /// Replaces the liveness timeouts of clients and drivers by `aeron.debug.timeout`, if that is set, for a process
    /// under a debugger. Returns the changed options with their previous values.
    pub fn use_debug_timeout(&mut self) -> Vec<(OptionId, String)> {
        let Some(timeout_ns) = self.debug_timeout_ns() else {
            return Vec::new();
        };
        let replaced = [
            (OptionId::DriverTimeout, timeout_ns / 1_000_000),
            (OptionId::ClientLivenessTimeout, timeout_ns),
            // Must be longer than the client liveness timeout.
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

    /// Returns true if the program of these options reads the option.
    #[must_use]
    pub fn is_in_scope(&self, option: &OptionSpec) -> bool {
        self.scope.reads(option)
    }

    /// Returns the value of an option.
    #[must_use]
    pub fn value(&self, id: OptionId) -> &Value {
        &self.entries[id as usize].value
    }

    /// Returns the source of the value of an option.
    #[must_use]
    pub fn source(&self, id: OptionId) -> &Source {
        &self.entries[id as usize].source
    }

    /// Returns the value of an option as a text that can be parsed again; empty if unset.
    #[must_use]
    pub fn text(&self, id: OptionId) -> String {
        id.spec().kind.format(self.value(id))
    }

    /// Returns the active profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns all options with their values and sources, in documentation order.
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
    /// Returns the value that applies if no source sets the option: that of the profile or the default.
    fn fallback(spec: &OptionSpec, profile: Profile, strength: u8) -> Self {
        let from_profile = profile
            .options()
            .iter()
            .find(|(id, _)| *id == spec.id)
            // A test parses the options of every profile, so this never fails.
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
        // A malformed text is reported as such.
        return match value {
            Ok(value) if value == spec.default_value() => Ok(value),
            Ok(_) | Err(InvalidValue::OutOfRange) => Err(Problem::Fixed(reason)),
            Err(InvalidValue::Malformed) => Err(Problem::Malformed),
            Err(InvalidValue::WithoutUnit) => Err(Problem::WithoutUnit),
        };
    }
    value.map_err(|refusal| match refusal {
        InvalidValue::Malformed => Problem::Malformed,
        InvalidValue::OutOfRange => Problem::OutOfRange,
        InvalidValue::WithoutUnit => Problem::WithoutUnit,
    })
}

#[cfg(test)]
mod tests;
