//! Whether somebody does in time what it has to do beside many who are calm, while its agent has other work.

/// How many others there are.
pub(crate) const COMPANIONS: i32 = 150;

/// All that is calm is looked at in such a time.
pub(crate) const LAP_NS: i64 = 10_000_000;

/// Time between duty cycles, while there is work in each.
pub(crate) const CYCLE_NS: i64 = 50_000;

/// An agent with somebody who is watched.
pub(crate) trait Busy {
    /// A duty cycle, [`CYCLE_NS`] later, with something to do that is about nobody. What it sends for who is watched.
    fn working(&mut self) -> Vec<Vec<u8>>;
}

/// How long it takes until what is looked for is sent, or something else is there to be seen.
pub(crate) fn time_until<A: Busy>(
    agent: &mut A,
    mut is_there: impl FnMut(&A, &[Vec<u8>]) -> bool,
) -> i64 {
    for cycles in 0..400_000 {
        let sent = agent.working();
        if is_there(agent, &sent) {
            return cycles * CYCLE_NS;
        }
    }
    panic!("it never happens");
}

/// Checks that in a crowd it takes no more time than alone, but for so much.
pub(crate) fn takes_the_same<A>(
    calm: impl Fn(i32) -> A,
    slack_ns: i64,
    story: impl Fn(&mut A) -> i64,
) {
    let [alone, crowded] = [0, COMPANIONS].map(|companions| story(&mut calm(companions)));
    assert!(
        crowded <= alone + slack_ns,
        "{crowded} ns, {alone} ns alone"
    );
}
