// SPDX-License-Identifier: Apache-2.0
//! Shrinks a failed scenario: removes operations as long as it fails in the same way, then simplifies the remaining
//! ones.
//!
//! The order of duty cycles and the lost datagrams come from the seed of the world, and differ if the operations
//! differ. A shorter scenario is therefore tried with several seeds before it counts as passing.

use super::execute::without_panic_output;
use super::{Failure, Op, Publish, Scenario, Subscribe, Suite};

/// Result of shrinking.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The reduced scenario.
    pub scenario: Scenario,
    /// Its failure.
    pub failure: Failure,
    /// Number of scenarios run.
    pub attempts: u64,
}

/// Reduces `scenario`, which fails with `failure`, until no reduction fails in the same way or `is_over` returns true
/// for the number of attempts. `run` executes a scenario and returns its failure.
pub fn shrink(
    scenario: &Scenario,
    failure: &Failure,
    is_over: impl Fn(u64) -> bool,
    run: impl Fn(&Scenario) -> Option<Failure>,
) -> Shrunk {
    shrink_with(&Suite::streams(), scenario, failure, is_over, run)
}

/// The same for a scenario of a suite.
pub(super) fn shrink_with(
    suite: &Suite,
    scenario: &Scenario,
    failure: &Failure,
    is_over: impl Fn(u64) -> bool,
    run: impl Fn(&Scenario) -> Option<Failure>,
) -> Shrunk {
    let mut search = Search {
        suite,
        best: scenario.clone(),
        failure: failure.clone(),
        attempts: 0,
        is_over,
        run_scenario: run,
    };
    without_panic_output(|| search.run());
    Shrunk {
        scenario: search.best,
        failure: search.failure,
        attempts: search.attempts,
    }
}

struct Search<'s, P, O> {
    suite: &'s Suite,
    best: Scenario,
    failure: Failure,
    attempts: u64,
    is_over: O,
    run_scenario: P,
}

impl<P: Fn(&Scenario) -> Option<Failure>, O: Fn(u64) -> bool> Search<'_, P, O> {
    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.remove_ops();
            self.remove_hosts();
            self.simplify();
            if self.best == before || self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        (self.is_over)(self.attempts)
    }

    /// Replaces the best scenario if this one fails in the same way.
    fn try_replace(&mut self, mut scenario: Scenario) -> bool {
        if scenario == self.best {
            return false;
        }
        for _ in 0..self.suite.seeds_of_a_shorter_scenario() {
            if self.is_over() {
                return false;
            }
            self.attempts += 1;
            match (self.run_scenario)(&scenario) {
                Some(failure) if failure.kind == self.failure.kind => {
                    (self.best, self.failure) = (scenario, failure);
                    return true;
                }
                _ => scenario.seed = scenario.seed.wrapping_add(1),
            }
        }
        false
    }

    /// Delta debugging: removes large parts first, then smaller ones, from the end.
    fn remove_ops(&mut self) {
        let mut part = self.best.ops.len().div_ceil(2).max(1);
        loop {
            let mut end = self.best.ops.len();
            while end > 0 {
                let start = end.saturating_sub(part);
                let mut scenario = self.best.clone();
                scenario.ops.drain(start..end);
                self.try_replace(scenario);
                end = start;
            }
            if part == 1 {
                return;
            }
            part = part.div_ceil(2).max(1);
        }
    }

    /// Hosts are numbered, so only the last one can be removed.
    fn remove_hosts(&mut self) {
        while self.best.hosts.len() > 1 {
            let mut scenario = self.best.clone();
            scenario.hosts.pop();
            if !self.try_replace(scenario) {
                return;
            }
        }
    }

    fn simplify(&mut self) {
        let mut scenario = self.best.clone();
        for host in &mut scenario.hosts {
            *host = super::HostConfig {
                ipv6: host.ipv6,
                no_driver: host.no_driver,
                ..super::HostConfig::default()
            };
        }
        self.try_replace(scenario);
        for index in 0..self.best.hosts.len() {
            let names: Vec<_> = self.best.hosts[index].options.keys().cloned().collect();
            for name in names {
                let mut scenario = self.best.clone();
                scenario.hosts[index].options.remove(&name);
                self.try_replace(scenario);
            }
            let mut scenario = self.best.clone();
            scenario.hosts[index].clock_offset_ms = 0;
            self.try_replace(scenario);
        }
        for index in 0..self.best.ops.len() {
            self.reduce_delay(index);
            let mut change = 0;
            while let Some(op) = simpler(self.suite, &self.best.ops[index].op, change) {
                let mut scenario = self.best.clone();
                scenario.ops[index].op = op;
                // A simplification that succeeded is tried again.
                if !self.try_replace(scenario) {
                    change += 1;
                }
            }
        }
    }

    /// Reduces the delay before an operation, and thereby the times of all later ones. Times need not be in order: an
    /// operation whose time has passed is applied at once.
    fn reduce_delay(&mut self, index: usize) {
        let before = index
            .checked_sub(1)
            .map_or(0, |before| self.best.ops[before].at_ms);
        let gap = self.best.ops[index].at_ms.saturating_sub(before);
        for less in [gap, gap / 2] {
            let mut scenario = self.best.clone();
            scenario.ops[index..]
                .iter_mut()
                .for_each(|op| op.at_ms = op.at_ms.saturating_sub(less));
            if less > 0 && self.try_replace(scenario) {
                return;
            }
        }
    }
}

/// Returns the simplification of an operation with this number, counting only those that change it.
fn simpler(suite: &Suite, op: &Op, change: usize) -> Option<Op> {
    if let Op::Custom(custom) = op {
        let mut candidates = suite.simpler(custom).into_iter();
        return candidates.nth(change).map(Op::Custom);
    }
    let mut candidates = Vec::new();
    let mut try_change = |make: &dyn Fn(&mut Op)| {
        let mut simple = op.clone();
        make(&mut simple);
        if simple != *op {
            candidates.push(simple);
        }
    };
    for field in 0..9 {
        try_change(&|op| {
            if let Op::SetFaults(profile)
            | Op::SetLinkFaults {
                profile: Some(profile),
                ..
            } = op
            {
                *profile.fields()[field] = 0;
            }
        });
    }
    try_change(&|op| halve(op));
    try_change(&|op| {
        if let Op::Publish(publish) | Op::Respond { publish, .. } = op {
            publish.pause_ms = 0;
        }
    });
    try_change(&|op| {
        if let Op::Publish(publish) = op {
            publish.exclusive = false;
        }
    });
    try_change(&|op| {
        if let Op::Publish(publish) = op {
            publish.lengths = crate::Lengths::Small;
        }
    });
    try_change(&|op| {
        if let Op::Subscribe(subscribe) = op {
            subscribe.skip_per_mille = 0;
        }
    });
    for index in 0..6 {
        try_change(&|op| match op {
            Op::Publish(publish) => publish.channel = without(&publish.channel, index),
            Op::Subscribe(subscribe) => subscribe.channel = without(&subscribe.channel, index),
            _ => {}
        });
        try_change(&|op| match op {
            Op::Publish(Publish {
                destinations: list, ..
            })
            | Op::Subscribe(Subscribe { sources: list, .. })
                if index < list.len() =>
            {
                list.remove(index);
            }
            _ => {}
        });
    }
    candidates.into_iter().nth(change)
}

fn halve(op: &mut Op) {
    match op {
        Op::Publish(publish) | Op::Respond { publish, .. } => publish.messages /= 2,
        Op::PublishMore { messages, .. } => *messages /= 2,
        Op::StallClient { ms, .. } | Op::StallDriver { ms, .. } | Op::StallHost { ms, .. } => {
            *ms /= 2;
        }
        Op::StepClock { ms, .. } => *ms /= 2,
        _ => {}
    }
}

/// Returns a channel without parameter number `index`; the first part, with the address, stays.
fn without(channel: &str, index: usize) -> String {
    let mut parts: Vec<_> = channel.split('|').collect();
    if index + 1 < parts.len() {
        parts.remove(index + 1);
    }
    parts.join("|")
}
