//! What all flows together have done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What starves within this time of the first to do so starves of the same: a machine that stands still does so for all
/// flows, which find out one after the other, those with the patience of an official program (two minutes) last.
const ONE_PAUSE: Duration = Duration::from_secs(130);

/// A flow may starve as much oftener than it is told to its end.
const UNLUCKY: u64 = 2;

/// Of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    rounds: u64,
    messages: u64,
    bytes: u64,
    missed: u64,
    starved: u64,
}

/// Counts of flows, and what went wrong in them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    flows: BTreeMap<&'static str, Done>,
    complaints: Vec<String>,
    /// When the machine last began to have no time for a client or a driver, and how often it did.
    pause_began: Option<Instant>,
    pauses: u64,
}

impl Tally {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages were received and were the right ones.
    pub(crate) fn received(&self, flow: &'static str, messages: u64, bytes: u64) {
        let mut state = self.state();
        let done = state.flows.entry(flow).or_default();
        done.messages += messages;
        done.bytes += bytes;
    }

    /// Messages did not come, nor had to.
    pub(crate) fn missed(&self, flow: &'static str, messages: u64) {
        self.state().flows.entry(flow).or_default().missed += messages;
    }

    /// A round is over, and all was as it should be.
    pub(crate) fn round(&self, flow: &'static str) {
        self.state().flows.entry(flow).or_default().rounds += 1;
    }

    /// A round came to nothing, as the machine had no time for a client or a driver: it proves nothing.
    pub(crate) fn starved(&self, flow: &'static str, what: &str) {
        eprintln!("soak: starved: {flow}: {what}");
        let mut state = self.state();
        state.flows.entry(flow).or_default().starved += 1;
        let is_another = |began: Instant| began.elapsed() > ONE_PAUSE;
        if state.pause_began.is_none_or(is_another) {
            state.pauses += 1;
            state.pause_began = Some(Instant::now());
        }
    }

    /// What to say if that happened too often: twice, and once more in twenty rounds, is an accident.
    pub(crate) fn starvation(&self) -> Option<String> {
        let state = self.state();
        let rounds: u64 = state.flows.values().map(|done| done.rounds).sum();
        let pauses = state.pauses;
        (pauses > 2 + rounds / 20).then(|| {
            format!("clients starved {pauses} times, {rounds} rounds were told to their end")
        })
    }

    pub(crate) fn complain(&self, flow: &'static str, what: &str) {
        let complaint = format!("{flow}: {what}");
        eprintln!("soak: {complaint}");
        self.state().complaints.push(complaint);
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.state().complaints.is_empty()
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.state().complaints.clone()
    }

    /// Flows that have told no round to its end, or starved oftener than that: want of time is no way to live.
    pub(crate) fn idle(&self, flows: &[&'static str]) -> Vec<String> {
        let state = self.state();
        let is_idle = |flow: &&&'static str| {
            let done = state.flows.get(**flow).copied().unwrap_or_default();
            done.rounds + done.starved == 0 || done.starved > done.rounds + UNLUCKY
        };
        let idle = flows.iter().filter(is_idle);
        idle.map(|flow| format!("{flow}: no round came to its end, or few"))
            .collect()
    }

    /// Flows over a cable that loses, from which nothing is missing although nothing is repaired in them.
    pub(crate) fn spared(&self, flows: &[&'static str]) -> Vec<String> {
        /// Among fewer messages none may be lost by chance: not once in ten thousand runs.
        const ENOUGH: u64 = 1_000;
        let state = self.state();
        let done = |flow| state.flows.get(flow).copied().unwrap_or_default();
        let is_spared =
            |flow: &&&'static str| done(**flow).missed == 0 && done(**flow).messages > ENOUGH;
        let spared = flows.iter().filter(is_spared);
        spared
            .map(|flow| format!("{flow}: nothing is repaired, and nothing is missing"))
            .collect()
    }

    /// A line for each flow.
    pub(crate) fn lines(&self) -> String {
        let state = self.state();
        let lines = state.flows.iter().map(|(name, done)| {
            let Done {
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
            "{} flows, {rounds} rounds ({} starved), {messages} messages, {} MB, {} complaints",
            state.flows.len(),
            all.map(|done| done.starved).sum::<u64>(),
            bytes / 1_000_000,
            state.complaints.len()
        )
    }
}
