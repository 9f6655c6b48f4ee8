// SPDX-License-Identifier: Apache-2.0
//! Idle strategies by name (docs/spec/uri-and-configuration.md §2.11).

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::args::{self, Shortest};
use super::{
    Adaptive, AdaptiveLimits, Backoff, BackoffLimits, Controllable, IdleStrategy, NoOp, Sleep,
    Spin, Yield,
};
use crate::counters::Counter;

const ACCEPTED: &str =
    "adaptive, backoff, noop, spin, yield, sleep-ns (or sleeping), sleep-ms, controllable";

const DEFAULT_SLEEP_NS: Duration = Duration::from_nanos(1);
const DEFAULT_SLEEP_MS: Duration = Duration::from_millis(1);

/// A validated strategy that is not built yet: each thread builds its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdleSpec {
    /// [`Adaptive`].
    Adaptive(AdaptiveLimits),
    /// [`Backoff`].
    Backoff(BackoffLimits),
    /// [`NoOp`].
    NoOp,
    /// [`Spin`].
    Spin,
    /// [`Yield`].
    Yield,
    /// [`Sleep`].
    Sleep(Duration),
    /// [`Controllable`].
    Controllable,
}

/// An invalid name or arguments of a strategy.
#[derive(Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdleError {
    /// Unknown name.
    #[error("unknown idle strategy `{name}`; accepted: {ACCEPTED}")]
    UnknownName {
        /// The name given.
        name: String,
    },
    /// Invalid arguments of a known strategy.
    #[error("arguments `{args}` of idle strategy `{strategy}` are not {expected}")]
    BadArguments {
        /// The strategy's canonical name.
        strategy: &'static str,
        /// The arguments given.
        args: String,
        /// The expected form.
        expected: &'static str,
    },
}

crate::debug_is_display!(IdleError);

/// Builds the strategy of that name; the same as [`IdleSpec::parse`] and [`IdleSpec::build`].
///
/// # Errors
/// See [`IdleSpec::parse`].
pub fn parse(name: &str, args: Option<&str>) -> Result<Box<dyn IdleStrategy>, IdleError> {
    IdleSpec::parse(name, args).map(|spec| spec.build())
}

impl IdleSpec {
    /// Reads a strategy name as users write it in a configuration for Aeron's C or Java driver: the
    /// short names, the C function names (`aeron_idle_strategy_backoff`) and the Java class names
    /// (`org.agrona.concurrent.BackoffIdleStrategy`). Strategies without arguments ignore `args`, as
    /// the C driver does.
    ///
    /// # Errors
    /// [`IdleError`] names what would be accepted.
    pub fn parse(name: &str, args: Option<&str>) -> Result<Self, IdleError> {
        let args = args.map(str::trim).filter(|args| !args.is_empty());
        match name.trim() {
            "adaptive" => adaptive(args).map(Self::Adaptive),
            "backoff"
            | "aeron_idle_strategy_backoff"
            | "org.agrona.concurrent.BackoffIdleStrategy" => backoff(args).map(Self::Backoff),
            "noop" | "aeron_idle_strategy_noop" | "org.agrona.concurrent.NoOpIdleStrategy" => {
                Ok(Self::NoOp)
            }
            "spin"
            | "aeron_idle_strategy_busy_spinning"
            | "org.agrona.concurrent.BusySpinIdleStrategy" => Ok(Self::Spin),
            "yield"
            | "aeron_idle_strategy_yielding"
            | "org.agrona.concurrent.YieldingIdleStrategy" => Ok(Self::Yield),
            "sleep-ns"
            | "sleeping"
            | "aeron_idle_strategy_sleeping"
            | "org.agrona.concurrent.SleepingIdleStrategy" => {
                sleep("sleep-ns", args, DEFAULT_SLEEP_NS)
            }
            "sleep-ms" | "org.agrona.concurrent.SleepingMillisIdleStrategy" => {
                sleep("sleep-ms", args, DEFAULT_SLEEP_MS)
            }
            "controllable" | "org.agrona.concurrent.ControllableIdleStrategy" => {
                Ok(Self::Controllable)
            }
            name => Err(IdleError::UnknownName {
                name: name.to_owned(),
            }),
        }
    }

    /// Builds the strategy. [`Controllable`] gets a private counter and so stays in its initial mode, park; a driver
    /// uses [`Self::build_controlled`].
    pub fn build(&self) -> Box<dyn IdleStrategy> {
        match *self {
            Self::Controllable => Box::new(Controllable::new(Counter::detached())),
            Self::Adaptive(limits) => Box::new(Adaptive::new(limits)),
            Self::Backoff(limits) => Box::new(Backoff::new(limits)),
            Self::NoOp => Box::new(NoOp),
            Self::Spin => Box::new(Spin),
            Self::Yield => Box::new(Yield),
            Self::Sleep(time) => Box::new(Sleep(time)),
        }
    }

    /// Builds the strategy, with the counter that switches [`Controllable`] (system counter 22).
    pub fn build_controlled(&self, status: &Counter) -> Box<dyn IdleStrategy> {
        match self {
            Self::Controllable => Box::new(Controllable::new(status.clone())),
            _ => self.build(),
        }
    }

    /// The canonical name; [`IdleSpec::parse`] accepts it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Adaptive(_) => "adaptive",
            Self::Backoff(_) => "backoff",
            Self::NoOp => "noop",
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Sleep(_) => "sleep-ns",
            Self::Controllable => "controllable",
        }
    }

    /// The arguments, in the form that [`IdleSpec::parse`] accepts.
    pub fn args(&self) -> Option<String> {
        match self {
            Self::Adaptive(limits) => Some(limits.to_string()),
            Self::Backoff(limits) => Some(limits.to_string()),
            Self::Sleep(time) => Some(Shortest(*time).to_string()),
            Self::NoOp | Self::Spin | Self::Yield | Self::Controllable => None,
        }
    }
}

impl Default for IdleSpec {
    fn default() -> Self {
        Self::Adaptive(AdaptiveLimits::default())
    }
}

/// The name, and the arguments after a space.
impl fmt::Display for IdleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.args().map_or(Ok(()), |args| write!(f, " {args}"))
    }
}

fn adaptive(args: Option<&str>) -> Result<AdaptiveLimits, IdleError> {
    let Some(text) = args else {
        return Ok(AdaptiveLimits::default());
    };
    let limits = || {
        let [spin, yielding, min_park, max_park] = args::fields(text)?.map(args::duration);
        let (min_park, max_park) = (min_park?, max_park?);
        let (spin, yielding) = (spin?, yielding?);
        (min_park <= max_park).then_some(AdaptiveLimits {
            spin,
            yielding,
            min_park,
            max_park,
        })
    };
    limits().ok_or_else(|| IdleError::BadArguments {
        strategy: "adaptive",
        args: text.to_owned(),
        expected: "`<spin>-<yield>-<min park>-<max park>`, four durations such as \
                   `1200us-50us-5us-1ms`, min park not above max park",
    })
}

fn backoff(args: Option<&str>) -> Result<BackoffLimits, IdleError> {
    let Some(text) = args else {
        return Ok(BackoffLimits::default());
    };
    let limits = || {
        let [spins, yields, min_park, max_park] = args::fields(text)?;
        let (spins, yields) = (spins.parse().ok()?, yields.parse().ok()?);
        let (min_park, max_park) = (args::duration(min_park)?, args::duration(max_park)?);
        (min_park <= max_park).then_some(BackoffLimits {
            spins,
            yields,
            min_park,
            max_park,
        })
    };
    limits().ok_or_else(|| IdleError::BadArguments {
        strategy: "backoff",
        args: text.to_owned(),
        expected: "`<spins>-<yields>-<min park>-<max park>`, two counts and two durations such as \
                   `10-20-1us-1ms`, min park not above max park",
    })
}

fn sleep(
    strategy: &'static str,
    args: Option<&str>,
    default: Duration,
) -> Result<IdleSpec, IdleError> {
    let Some(text) = args else {
        return Ok(IdleSpec::Sleep(default));
    };
    args::duration(text)
        .map(IdleSpec::Sleep)
        .ok_or_else(|| IdleError::BadArguments {
            strategy,
            args: text.to_owned(),
            expected: "a duration: digits and one of ns, us, ms, s",
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parsed_spec_prints_as_it_reads(
            name in prop_oneof![Just("adaptive"), Just("backoff"), Just("sleep-ns"), Just("sleep-ms"), Just("spin")],
            args in prop_oneof![
                "[0-9a-zA-Z -]{0,24}",
                "[0-9]{1,4}-[0-9]{1,4}-[0-9]{1,20}(ns|us|ms|s)?-[0-9]{1,20}(NS|us|ms|s)?",
                "[0-9]{1,22}(ns|us|ms|s)?",
            ],
        ) {
            match IdleSpec::parse(name, Some(&args)) {
                Ok(spec) => prop_assert_eq!(IdleSpec::parse(spec.name(), spec.args().as_deref()), Ok(spec)),
                Err(error) => prop_assert!(error.to_string().contains(args.trim())),
            }
        }
    }

    fn spec(name: &str, args: &str) -> Result<IdleSpec, IdleError> {
        IdleSpec::parse(name, Some(args))
    }

    #[test]
    fn all_names_of_both_drivers_parse() {
        for (names, expected) in [
            (&["noop", "aeron_idle_strategy_noop"][..], IdleSpec::NoOp),
            (
                &["spin", "aeron_idle_strategy_busy_spinning"],
                IdleSpec::Spin,
            ),
            (&["yield", "aeron_idle_strategy_yielding"], IdleSpec::Yield),
            (
                &["sleep-ns", "sleeping", "aeron_idle_strategy_sleeping"],
                IdleSpec::Sleep(Duration::from_nanos(1)),
            ),
            (
                &[
                    "sleep-ms",
                    "org.agrona.concurrent.SleepingMillisIdleStrategy",
                ],
                IdleSpec::Sleep(Duration::from_millis(1)),
            ),
            (
                &[
                    "backoff",
                    " backoff ",
                    "aeron_idle_strategy_backoff",
                    "org.agrona.concurrent.BackoffIdleStrategy",
                ],
                IdleSpec::Backoff(BackoffLimits::default()),
            ),
            (&["adaptive"], IdleSpec::default()),
            (
                &[
                    "controllable",
                    "org.agrona.concurrent.ControllableIdleStrategy",
                ],
                IdleSpec::Controllable,
            ),
        ] {
            for name in names {
                assert_eq!(IdleSpec::parse(name, None), Ok(expected), "{name}");
            }
        }
    }

    #[test]
    fn arguments_are_read() {
        let limits = BackoffLimits {
            spins: 100,
            yields: 0,
            min_park: Duration::from_nanos(500),
            max_park: Duration::from_millis(2),
        };
        assert_eq!(
            spec("backoff", "100-0-500ns-2ms"),
            Ok(IdleSpec::Backoff(limits))
        );
        assert_eq!(
            spec("backoff", ""),
            Ok(IdleSpec::Backoff(BackoffLimits::default()))
        );
        assert_eq!(
            spec("sleeping", "16ms"),
            Ok(IdleSpec::Sleep(Duration::from_millis(16)))
        );
        assert_eq!(
            spec("noop", "left over from another strategy"),
            Ok(IdleSpec::NoOp)
        );
        let Ok(IdleSpec::Adaptive(limits)) = spec("adaptive", "1ms-0-2us-3ms") else {
            panic!()
        };
        assert_eq!(limits.spin, Duration::from_millis(1));
        assert_eq!(limits.yielding, Duration::ZERO);
    }

    #[test]
    fn printed_specs_read_back() {
        for (name, args) in [
            ("adaptive", "1ms-2us-3us-4ms"),
            ("backoff", "1-2-3us-4s"),
            ("sleep-ms", "20ms"),
            ("yield", ""),
        ] {
            let first = spec(name, args).unwrap();
            assert_eq!(
                IdleSpec::parse(first.name(), first.args().as_deref()),
                Ok(first)
            );
        }
        assert_eq!(
            IdleSpec::default().to_string(),
            "adaptive 1200us-50us-5us-1ms"
        );
    }

    #[test]
    fn controllable_follows_the_counter_it_is_given() {
        let status = Counter::detached();
        let mut strategy = IdleSpec::Controllable.build_controlled(&status);
        assert_eq!(status.get(), 4);
        status.set(1);
        strategy.idle(0, &mut |_| panic!("mode 1 does nothing"));
        IdleSpec::NoOp.build_controlled(&status);
        assert_eq!(status.get(), 1);
        let mut parks = 0;
        IdleSpec::Controllable.build().idle(0, &mut |_| parks += 1);
        assert_eq!(parks, 1);
    }

    #[test]
    fn unknown_name_error_lists_the_known_ones() {
        let error = parse("bakcoff", None).unwrap_err().to_string();
        assert!(
            error.contains("`bakcoff`") && error.contains("backoff, noop"),
            "{error}"
        );
    }

    #[test]
    fn bad_arguments_error_states_the_form() {
        for (name, args) in [
            ("backoff", "10-20-1us"),
            ("backoff", "10-20-2ms-1ms"),
            ("backoff", "x-20-1us-1ms"),
            ("adaptive", "10-20-30"),
            ("adaptive", "10us-20us-30us-4us"),
            ("sleep-ns", "1m"),
        ] {
            let error = parse(name, Some(args)).unwrap_err();
            assert!(matches!(error, IdleError::BadArguments { .. }), "{error}");
            assert!(error.to_string().contains(args), "{error}");
        }
    }
}
