//! The values of all options, and where each came from.

use super::error::{OptionError, OptionErrors, Problem};
use super::kind::{Refusal, Value};
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
                Some(spec) if self.reads(spec) => {
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
    /// The text is no value of the option, out of its range, or asks for something that is not built.
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
            self.take_profile();
        }
        Ok(())
    }

    fn take_profile(&mut self) {
        self.profile = Profile::parse(self.profile_name()).unwrap_or_default();
        for (entry, spec) in self.entries.iter_mut().zip(OptionId::ALL) {
            if entry.fallback {
                *entry = Entry::fallback(spec, self.profile, entry.strength);
            }
        }
    }

    fn reads(&self, spec: &OptionSpec) -> bool {
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
    if let Status::NotBuilt(feature) = spec.status {
        // What is no value at all is called that, rather than a missing feature.
        return match value {
            Ok(value) if value == spec.default_value() => Ok(value),
            Ok(_) | Err(Refusal::OutOfRange | Refusal::Lacks(_)) => Err(Problem::NotBuilt(feature)),
            Err(Refusal::Malformed) => Err(Problem::Malformed),
        };
    }
    value.map_err(|refusal| match refusal {
        Refusal::Malformed => Problem::Malformed,
        Refusal::OutOfRange => Problem::OutOfRange,
        Refusal::Lacks(feature) => Problem::NotBuilt(feature),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Source {
        Source::File("a.properties".into())
    }

    #[test]
    fn stronger_sources_win_in_any_order() {
        let mut options = OptionSet::driver();
        options
            .apply(&Source::CommandLine, [("aeron.mtu.length", "4k")])
            .unwrap();
        options
            .apply(
                &Source::Environment,
                [("AERON_MTU_LENGTH", "8k"), ("AERON_MAX_RESEND", "7")],
            )
            .unwrap();
        options
            .apply(
                &file(),
                [("aeron.mtu.length", "2k"), ("aeron.max.resend", "8")],
            )
            .unwrap();
        assert_eq!((options.mtu_length(), options.max_resend()), (4096, 8));
        assert_eq!(options.source(OptionId::MtuLength), &Source::CommandLine);
        options
            .set(OptionId::MtuLength, "1408", &Source::Code)
            .unwrap();
        assert_eq!(options.mtu_length(), 1408);
    }

    #[test]
    fn an_empty_value_takes_weaker_ones_away() {
        let mut options = OptionSet::driver();
        options
            .apply(&Source::Environment, [("AERON_MTU_LENGTH", "8k")])
            .unwrap();
        options
            .apply(&Source::CommandLine, [("aeron.mtu.length", "")])
            .unwrap();
        assert_eq!(options.mtu_length(), 1408);
        assert_eq!(options.source(OptionId::MtuLength), &Source::Default);
        options
            .apply(&Source::Environment, [("AERON_MTU_LENGTH", "8k")])
            .unwrap();
        assert_eq!(options.mtu_length(), 1408);
    }

    #[test]
    fn profiles_lie_below_every_other_source() {
        let mut options = OptionSet::driver();
        assert_eq!(options.sender_idle_strategy(), Some("adaptive"));
        assert_eq!(
            options.source(OptionId::SenderIdleStrategy),
            &Source::Profile(Profile::Balanced)
        );
        options
            .apply(
                &Source::Environment,
                [("AERON_SENDER_IDLE_STRATEGY", "yield")],
            )
            .unwrap();
        options
            .apply(&Source::CommandLine, [("aeron.receiver.idle.strategy", "")])
            .unwrap();
        options
            .apply(&file(), [("taran.profile", "low-latency")])
            .unwrap();
        assert_eq!(options.sender_idle_strategy(), Some("yield"));
        assert_eq!(options.receiver_idle_strategy(), Some("noop"));
        assert!(!options.term_buffer_sparse_file());
        options
            .apply(&Source::CommandLine, [("taran.profile", "low-footprint")])
            .unwrap();
        assert_eq!(options.threading_mode_name(), "SHARED");
        assert_eq!(options.receiver_idle_strategy(), Some("backoff"));
        assert!(options.term_buffer_sparse_file());
    }

    #[test]
    fn the_options_of_every_profile_are_read() {
        for profile in Profile::ALL {
            for (id, text) in profile.options() {
                assert!(read(id.spec(), text).is_ok(), "{profile} {id:?}");
            }
            let mut options = OptionSet::driver();
            options
                .set(OptionId::Profile, profile.as_str(), &Source::Code)
                .unwrap();
            assert_eq!(options.profile(), profile);
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let mut options = OptionSet::driver();
        let errors = options
            .apply(
                &Source::Environment,
                [
                    ("AERON_MTU_LENGTH", "1400"),
                    ("AERON_TIMER_INTERVAL", "1x"),
                    ("AERON_EVENT_LOG", "admin"),
                    ("AERON_CONGESTIONCONTROL_SUPPLIER", "cubic"),
                    ("AERON_MAX_RESEND", "7"),
                ],
            )
            .unwrap_err();
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "aeron.mtu.length=1400 (environment variable AERON_MTU_LENGTH) is out of range: needs a multiple of 32 \
                 in 64..65504; change it, or remove it for the default 1408",
                "aeron.timer.interval=1x (environment variable AERON_TIMER_INTERVAL) is not understood: needs a \
                 duration such as 100ms: digits with ns, us, ms or s; change it, or remove it for the default 1s",
                "aeron.event.log=admin (environment variable AERON_EVENT_LOG) needs a feature that is not built yet: \
                 the event log; remove it to leave it unset",
                "aeron.CongestionControl.supplier=cubic (environment variable AERON_CONGESTIONCONTROL_SUPPLIER) needs \
                 a feature that is not built yet: CUBIC congestion control; remove it for the default default",
            ]
        );
        assert_eq!(options.max_resend(), 7);
    }

    #[test]
    fn what_is_not_built_takes_its_default() {
        let mut options = OptionSet::driver();
        for spec in OptionId::ALL
            .iter()
            .filter(|spec| spec.status != Status::Built)
        {
            assert!(
                options.set(spec.id, spec.default, &Source::Code).is_ok(),
                "{}",
                spec.property
            );
        }
        for (name, text) in [
            (
                "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
                "aeron_max_multicast_flow_control_strategy_supplier",
            ),
            ("AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT", "10000000000"),
            ("AERON_EVENT_LOG_DISABLE", ""),
            ("AERON_NAK_UNICAST_DELAY", "0"),
            ("AERON_PUBLICATION_LINGER_TIMEOUT", "0"),
        ] {
            assert!(
                options.apply(&Source::Environment, [(name, text)]).is_ok(),
                "{name}={text}"
            );
        }
    }

    #[test]
    fn others_names_are_passed_over() {
        let mut options = OptionSet::driver();
        let unknown = options
            .apply(
                &Source::Environment,
                [
                    ("PATH", "/bin"),
                    ("aeron.mtu.length", "bad"),
                    ("AERON_CLIENT_IDLE_SLEEP_DURATION", "bad"),
                    ("AERON_ARCHIVE_DIR", "x"),
                    ("AERON_TERM_BUFFER_LENGHT", "64k"),
                ],
            )
            .unwrap();
        assert_eq!(unknown.len(), 1);
        assert_eq!(
            unknown[0].to_string(),
            "unknown option AERON_TERM_BUFFER_LENGHT (environment), did you mean AERON_TERM_BUFFER_LENGTH?"
        );
        let mut client = OptionSet::client();
        client
            .apply(
                &Source::Environment,
                [("AERON_MTU_LENGTH", "bad"), ("AERON_DIR", "/x")],
            )
            .unwrap();
        assert_eq!(client.dir(), Some("/x"));
    }

    #[test]
    fn explain_lists_what_belongs_to_the_program() {
        let options = OptionSet::client();
        let all: Vec<_> = options.explain().collect();
        assert!(all.iter().any(|e| e.option.id == OptionId::ClientName));
        assert!(!all.iter().any(|e| e.option.id == OptionId::MtuLength));
        let timeout = all
            .iter()
            .find(|e| e.option.id == OptionId::DriverTimeout)
            .unwrap();
        assert_eq!(
            (timeout.value.as_str(), timeout.source),
            ("10000", &Source::Default)
        );
    }
}
