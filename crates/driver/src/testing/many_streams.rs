// SPDX-License-Identifier: Apache-2.0
//! Checks that a stream among many idle ones is served in time while its agent has other work.

/// Number of idle streams.
pub(crate) const OTHER_STREAMS: i32 = 150;

/// Time within which every idle stream is polled.
pub(crate) const SWEEP_PERIOD_NS: i64 = 10_000_000;

/// Time between duty cycles of a busy agent.
pub(crate) const CYCLE_NS: i64 = 50_000;

/// Agent with a stream under test.
pub(crate) trait BusyAgent {
    /// Runs a duty cycle, [`CYCLE_NS`] later, with work that concerns no stream. Returns what is sent for the stream
    /// under test.
    fn busy_cycle(&mut self) -> Vec<Vec<u8>>;
}

/// Returns the time until `is_there` is true.
pub(crate) fn time_until<A: BusyAgent>(
    agent: &mut A,
    mut is_there: impl FnMut(&A, &[Vec<u8>]) -> bool,
) -> i64 {
    for cycles in 0..400_000 {
        let sent = agent.busy_cycle();
        if is_there(agent, &sent) {
            return cycles * CYCLE_NS;
        }
    }
    panic!("it never happens");
}

/// Asserts that among many idle streams a scenario takes at most `slack_ns` longer than alone.
pub(crate) fn assert_same_time<A>(
    create: impl Fn(i32) -> A,
    slack_ns: i64,
    scenario: impl Fn(&mut A) -> i64,
) {
    let [alone, among_many] = [0, OTHER_STREAMS].map(|others| scenario(&mut create(others)));
    assert!(
        among_many <= alone + slack_ns,
        "{among_many} ns, {alone} ns alone"
    );
}
