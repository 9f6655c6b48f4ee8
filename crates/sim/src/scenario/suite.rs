// SPDX-License-Identifier: Apache-2.0
//! Suites: what random worlds consist of.
//!
//! A [`Suite`] has operations, processes and invariants. [`Suite::streams`] has drivers and clients with streams; a
//! crate with processes of its own adds them to it, or creates a suite without drivers. [`Suite::random`] generates a
//! scenario, [`Suite::run`] executes it and [`Suite::shrink`] reduces one that fails.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::definition::{CustomOp, HostConfig, STREAMS};
use super::shrink::{Shrunk, shrink_with};
use super::{Coverage, Failure, Observer, Op, Scenario, TimedOp, execute};
use crate::check::Violation;
use crate::world::Boot;
use crate::{HostIndex, World};

/// A kind of operation that a crate adds to random worlds. In the text of a scenario it is one line of JSON, so that a
/// failed scenario can be read, edited and run again.
pub trait Operation: Clone + Serialize + DeserializeOwned + 'static {
    /// Name in the text of a scenario and in the coverage table, e.g. `log_writer`.
    const NAME: &'static str;

    /// Returns the operations of one scenario with their times, in milliseconds after its start.
    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)>;

    /// Applies the operation. Returns false if its subject does not exist, such as a process that is dead, or was never
    /// started because the scenario was shrunk.
    fn apply(&self, world: &mut World) -> bool;

    /// Returns simpler operations to try instead of this one in a scenario that fails. Each must be nearer to an
    /// operation that has none, or shrinking does not end by itself.
    fn simpler(&self) -> Vec<Self> {
        Vec::new()
    }
}

/// State of the scenario that a generator of operations can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Number of hosts.
    pub hosts: usize,
    /// Time of the last operation.
    pub duration_ms: u64,
}

/// A kind of operation without its type.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    generate: fn(&mut fastrand::Rng, &Setting) -> Vec<(u64, Value)>,
    apply: fn(&Value, &mut World) -> Result<bool, serde_json::Error>,
    check: fn(&Value) -> Result<(), serde_json::Error>,
    simpler: fn(&Value) -> Vec<Value>,
}

/// Prepares a world; see [`Suite::set_up`].
type SetUp = dyn Fn(&mut World) + Send + Sync;

/// Ends a world; see [`Suite::finish`].
type Finish = dyn Fn(&mut World) -> Result<(), Violation> + Send + Sync;

/// Operations, processes and invariants of random worlds; see the module.
pub struct Suite {
    name: &'static str,
    /// Numbers of hosts; `None` for drivers and clients with streams, which have their own generator.
    bare_hosts: Option<RangeInclusive<usize>>,
    /// Times over which the operations of a suite without streams are distributed.
    duration_ms: RangeInclusive<u64>,
    cuts_power: bool,
    shrink_seeds: u64,
    kinds: Vec<Kind>,
    boot: Vec<Arc<Boot>>,
    set_up: Vec<Box<SetUp>>,
    finish: Vec<Box<Finish>>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("name", &self.name)
            .field("bare_hosts", &self.bare_hosts)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

/// Default of the longest time over which the operations of a suite without streams are distributed.
const LONGEST_MS: u64 = 60_000;

/// Default number of seeds with which a shorter scenario is tried.
const SHRINK_SEEDS: u64 = 3;

/// Highest number of power cuts in a scenario.
const POWER_CUTS: usize = 10;

impl Suite {
    /// Drivers and clients with streams.
    #[must_use]
    pub fn streams() -> Self {
        Self::create(STREAMS, None)
    }

    /// Creates a suite of hosts without drivers. The name is written to its scenarios.
    ///
    /// # Panics
    /// If there may be no host.
    #[must_use]
    pub fn without_drivers(name: &'static str, hosts: RangeInclusive<usize>) -> Self {
        assert!(*hosts.start() > 0 && !hosts.is_empty(), "{hosts:?} hosts");
        Self::create(name, Some(hosts))
    }

    fn create(name: &'static str, bare_hosts: Option<RangeInclusive<usize>>) -> Self {
        Self {
            name,
            bare_hosts,
            duration_ms: 1..=LONGEST_MS,
            cuts_power: false,
            shrink_seeds: SHRINK_SEEDS,
            kinds: Vec::new(),
            boot: Vec::new(),
            set_up: Vec::new(),
            finish: Vec::new(),
        }
    }

    /// Renames the suite, because something is added to it.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Adds a kind of operation.
    #[must_use]
    pub fn operation<O: Operation>(mut self) -> Self {
        self.kinds.push(Kind {
            name: O::NAME,
            generate: |random, setting| {
                let operations = O::generate(random, setting).into_iter();
                operations
                    .map(|(at_ms, operation)| (at_ms, encode(&operation)))
                    .collect()
            },
            apply: |value, world| Ok(O::deserialize(value)?.apply(world)),
            check: |value| O::deserialize(value).map(|_| ()),
            simpler: |value| {
                let operation = O::deserialize(value);
                let simpler = operation.map(|it| it.simpler()).unwrap_or_default();
                simpler.iter().map(encode).collect()
            },
        });
        self
    }

    /// Sets the times over which the operations of a scenario without streams are distributed, in milliseconds. Default:
    /// up to a minute.
    #[must_use]
    pub fn duration_ms(self, duration_ms: RangeInclusive<u64>) -> Self {
        Self {
            duration_ms,
            ..self
        }
    }

    /// Adds power cuts of hosts, and boots after them. A suite that does so starts its processes by [`boot`](Self::boot).
    #[must_use]
    pub fn power_cuts(self) -> Self {
        Self {
            cuts_power: true,
            ..self
        }
    }

    /// Sets the number of seeds with which a shorter scenario is tried before it counts as passing. Default: 3. More
    /// are needed if a failure depends on what a power cut leaves.
    #[must_use]
    pub fn shrink_seeds(self, shrink_seeds: u64) -> Self {
        Self {
            shrink_seeds,
            ..self
        }
    }

    /// Adds a function that prepares each world, before processes are started: it adds invariants and records.
    #[must_use]
    pub fn set_up(mut self, set_up: impl Fn(&mut World) + Send + Sync + 'static) -> Self {
        self.set_up.push(Box::new(set_up));
        self
    }

    /// Adds a function that starts the processes of a host: for each host at the start of a world, and when a host boots
    /// after a power cut.
    #[must_use]
    pub fn boot(mut self, boot: impl Fn(&mut World, HostIndex) + Send + Sync + 'static) -> Self {
        self.boot.push(Arc::new(boot));
        self
    }

    /// Adds a function that ends each world, after the last operation, when disks are without faults and all hosts have
    /// power again: it lets time pass, and checks that everything continued. In a suite with streams it is called before
    /// these are checked and closed.
    #[must_use]
    pub fn finish(
        mut self,
        finish: impl Fn(&mut World) -> Result<(), Violation> + Send + Sync + 'static,
    ) -> Self {
        self.finish.push(Box::new(finish));
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true for drivers and clients with streams.
    pub(super) fn has_streams(&self) -> bool {
        self.bare_hosts.is_none()
    }

    /// Generates the scenario of a seed.
    #[must_use]
    pub fn random(&self, seed: u64) -> Scenario {
        let mut scenario = match &self.bare_hosts {
            None => Scenario::random(seed),
            Some(hosts) => bare_scenario(seed, hosts.clone()),
        };
        self.name.clone_into(&mut scenario.suite);
        if self.kinds.is_empty() && !self.cuts_power {
            return scenario;
        }
        let mut random = fastrand::Rng::with_seed(!seed);
        let last_ms = scenario.ops.last().map(|op| op.at_ms);
        let setting = Setting {
            hosts: scenario.hosts.len(),
            duration_ms: last_ms.unwrap_or_else(|| random.u64(self.duration_ms.clone())),
        };
        for kind in &self.kinds {
            let generated = (kind.generate)(&mut random.fork(), &setting);
            let ops = generated.into_iter().map(|(at_ms, operation)| TimedOp {
                at_ms,
                op: Op::Custom(CustomOp {
                    kind: kind.name.to_owned(),
                    operation,
                }),
            });
            scenario.ops.extend(ops);
        }
        for host in &mut scenario.hosts {
            host.large_sectors = random.bool();
        }
        if self.cuts_power {
            scenario.ops.extend(power_cuts(&mut random, &setting));
        }
        scenario.ops.sort_by_key(|op| op.at_ms);
        scenario
    }

    /// Runs a scenario to its end.
    ///
    /// # Errors
    /// A check failed, something panicked, or an operation is not one of this suite.
    pub fn run(&self, scenario: &Scenario) -> Result<Coverage, Failure> {
        self.run_with(scenario, &mut |_| {})
    }

    /// The same; `observer` is called with the world after each operation.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(
        &self,
        scenario: &Scenario,
        observer: Observer<'_>,
    ) -> Result<Coverage, Failure> {
        execute::run_suite(self, scenario, observer)
    }

    /// Reduces `scenario`, which fails with `failure`, until no reduction fails in the same way or `is_over` returns
    /// true for the number of attempts.
    pub fn shrink(
        &self,
        scenario: &Scenario,
        failure: &Failure,
        is_over: impl Fn(u64) -> bool,
    ) -> Shrunk {
        let run = |scenario: &Scenario| self.run(scenario).err();
        shrink_with(self, scenario, failure, is_over, run)
    }

    /// Checks that all operations of a scenario are of this suite.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        if scenario.suite != self.name {
            let (needed, own) = (&scenario.suite, self.name);
            return Err(format!(
                "the scenario is of the suite `{needed}`, not of `{own}`: run it with --suite {needed}"
            ));
        }
        for TimedOp { at_ms, op } in &scenario.ops {
            let Op::Custom(custom) = op else { continue };
            let kind = self.kind(custom)?;
            (kind.check)(&custom.operation)
                .map_err(|error| format!("operation `{}` at {at_ms} ms: {error}", custom.kind))?;
        }
        Ok(())
    }

    pub(super) fn set_up_world(&self, world: &mut World) {
        for set_up in &self.set_up {
            set_up(world);
        }
        for boot in &self.boot {
            world.add_boot(Arc::clone(boot));
        }
    }

    pub(super) fn seeds_of_a_shorter_scenario(&self) -> u64 {
        self.shrink_seeds
    }

    pub(super) fn finish_world(&self, world: &mut World) -> Result<(), Violation> {
        self.finish.iter().try_for_each(|finish| finish(world))
    }

    /// Applies an operation; returns true if its subject exists.
    pub(super) fn apply(&self, custom: &CustomOp, world: &mut World) -> Result<bool, String> {
        let applied = (self.kind(custom)?.apply)(&custom.operation, world);
        applied.map_err(|error| format!("operation `{}`: {error}", custom.kind))
    }

    pub(super) fn simpler(&self, custom: &CustomOp) -> Vec<CustomOp> {
        let kind = self.kind(custom);
        let simpler = kind.map(|kind| (kind.simpler)(&custom.operation));
        let simpler = simpler.unwrap_or_default().into_iter();
        simpler
            .map(|operation| CustomOp {
                kind: custom.kind.clone(),
                operation,
            })
            .collect()
    }

    fn kind(&self, custom: &CustomOp) -> Result<&Kind, String> {
        let found = self.kinds.iter().find(|kind| kind.name == custom.kind);
        found.ok_or_else(|| {
            let (kind, suite) = (&custom.kind, self.name);
            format!("the suite `{suite}` has no operation `{kind}`")
        })
    }
}

fn bare_scenario(seed: u64, hosts: RangeInclusive<usize>) -> Scenario {
    let mut random = fastrand::Rng::with_seed(seed);
    let host = HostConfig {
        no_driver: true,
        ..HostConfig::default()
    };
    Scenario {
        seed: random.u64(..),
        suite: String::new(),
        idle_ms: [20, 50, 80][random.usize(0..3)],
        fine_per_mille: [0, 50, 200, 1_000][random.usize(0..4)],
        corrupts: false,
        hosts: vec![host; random.usize(hosts)],
        ops: Vec::new(),
    }
}

/// Returns power cuts, and boots some time after them.
fn power_cuts(random: &mut fastrand::Rng, setting: &Setting) -> Vec<TimedOp> {
    let mut ops = Vec::new();
    for _ in 0..random.usize(0..=POWER_CUTS) {
        let host = random.usize(0..setting.hosts);
        let at_ms = random.u64(0..=setting.duration_ms);
        // A uniform choice of the magnitude, so that many are short beside the scenario.
        let magnitude = random.u32(0..=(setting.duration_ms / 8).max(1).ilog2());
        let off_ms = random.u64(0..=1 << magnitude);
        ops.push(TimedOp {
            at_ms,
            op: Op::PowerCut { host },
        });
        ops.push(TimedOp {
            at_ms: at_ms.saturating_add(off_ms).min(setting.duration_ms),
            op: Op::Boot { host },
        });
    }
    ops
}

fn encode(operation: &impl Serialize) -> Value {
    match serde_json::to_value(operation) {
        Ok(value) => value,
        Err(error) => panic!("an operation cannot be serialised: {error}"),
    }
}
