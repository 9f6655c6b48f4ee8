// SPDX-License-Identifier: Apache-2.0
//! Totals and errors of all flows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Starvation within this time of a first case counts as the same stall: a stall of the machine affects all flows, and
/// the timeouts that reveal it are up to two minutes apart (official programs).
const SAME_STALL: Duration = Duration::from_secs(130);

/// Number by which a flow's starved rounds may exceed its completed ones.
const MAX_EXCESS_STARVED: u64 = 2;

/// Totals of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct FlowTotals {
    rounds: u64,
    messages: u64,
    bytes: u64,
    missed: u64,
    starved: u64,
}

/// Totals of all flows and their errors.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    flows: BTreeMap<&'static str, FlowTotals>,
    errors: Vec<String>,
    /// Start of the last stall of the machine, and number of stalls.
    stall_began: Option<Instant>,
    stalls: u64,
}

impl Tally {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records messages that were received and correct.
    pub(crate) fn received(&self, flow: &'static str, messages: u64, bytes: u64) {
        let mut state = self.state();
        let done = state.flows.entry(flow).or_default();
        done.messages += messages;
        done.bytes += bytes;
    }

    /// Records messages that were not received and did not have to be.
    pub(crate) fn missed(&self, flow: &'static str, messages: u64) {
        self.state().flows.entry(flow).or_default().missed += messages;
    }

    /// Records a completed round.
    pub(crate) fn round(&self, flow: &'static str) {
        self.state().flows.entry(flow).or_default().rounds += 1;
    }

    /// Records a round that failed because a client or driver was starved of CPU time.
    pub(crate) fn starved(&self, flow: &'static str, what: &str) {
        eprintln!("soak: starved: {flow}: {what}");
        let mut state = self.state();
        state.flows.entry(flow).or_default().starved += 1;
        let is_another = |began: Instant| began.elapsed() > SAME_STALL;
        if state.stall_began.is_none_or(is_another) {
            state.stalls += 1;
            state.stall_began = Some(Instant::now());
        }
    }

    /// Returns an error if starvation was too frequent: more than twice, plus once in twenty rounds.
    pub(crate) fn starvation(&self) -> Option<String> {
        let state = self.state();
        let rounds: u64 = state.flows.values().map(|done| done.rounds).sum();
        let stalls = state.stalls;
        (stalls > 2 + rounds / 20)
            .then(|| format!("clients starved {stalls} times, {rounds} rounds were completed"))
    }

    pub(crate) fn record_error(&self, flow: &'static str, what: &str) {
        let error = format!("{flow}: {what}");
        eprintln!("soak: {error}");
        self.state().errors.push(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.state().errors.is_empty()
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.state().errors.clone()
    }

    /// Returns an error for each flow that has completed no round, or was starved too often.
    pub(crate) fn flows_without_rounds(&self, flows: &[&'static str]) -> Vec<String> {
        let state = self.state();
        let is_idle = |flow: &&&'static str| {
            let done = state.flows.get(**flow).copied().unwrap_or_default();
            done.rounds + done.starved == 0 || done.starved > done.rounds + MAX_EXCESS_STARVED
        };
        let flows_without_rounds = flows.iter().filter(is_idle);
        flows_without_rounds
            .map(|flow| format!("{flow}: no round was completed, or too few"))
            .collect()
    }

    /// Returns an error for each unreliable flow without loss, although the link loses datagrams.
    pub(crate) fn flows_without_loss(&self, flows: &[&'static str]) -> Vec<String> {
        /// With fewer messages, no loss may be chance; with more, its probability is below one in ten thousand.
        const ENOUGH: u64 = 1_000;
        let state = self.state();
        let done = |flow| state.flows.get(flow).copied().unwrap_or_default();
        let is_lossless =
            |flow: &&&'static str| done(**flow).missed == 0 && done(**flow).messages > ENOUGH;
        let flows_without_loss = flows.iter().filter(is_lossless);
        flows_without_loss
            .map(|flow| format!("{flow}: nothing is repaired, and nothing is missing"))
            .collect()
    }

    /// Returns one line per flow.
    pub(crate) fn lines(&self) -> String {
        let state = self.state();
        let lines = state.flows.iter().map(|(name, done)| {
            let FlowTotals {
                rounds,
                messages,
                bytes,
                missed,
                starved: _,
            } = done;
            let missed = match missed {
                0 => String::new(),
                missed => format!(", {missed} not received"),
            };
            format!(
                "  {name:<34} {rounds:>5} rounds {messages:>10} messages {:>8} MB{missed}\n",
                bytes / 1_000_000
            )
        });
        lines.collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let all = state.flows.values();
        let (rounds, messages, bytes) =
            all.clone()
                .fold((0, 0, 0), |(rounds, messages, bytes), done| {
                    (
                        rounds + done.rounds,
                        messages + done.messages,
                        bytes + done.bytes,
                    )
                });
        write!(
            f,
            "{} flows, {rounds} rounds ({} starved), {messages} messages, {} MB, {} errors",
            state.flows.len(),
            all.map(|done| done.starved).sum::<u64>(),
            bytes / 1_000_000,
            state.errors.len()
        )
    }
}
