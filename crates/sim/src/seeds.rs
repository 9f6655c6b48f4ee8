// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario with many seeds and prints how to repeat a failed seed.
//!
//! `TARAN_SIM_SEED=n` runs only that seed, `TARAN_SIM_SEEDS=n` runs n seeds instead of the default number, and
//! `TARAN_SIM_TRACE=1` prints all events.

use std::cell::Cell;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

/// Variable that selects one seed.
const SEED: &str = "TARAN_SIM_SEED";
/// Variable that sets the number of seeds.
const SEEDS: &str = "TARAN_SIM_SEEDS";

thread_local! {
    /// Virtual time simulated by worlds of this thread.
    static SIMULATED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds the elapsed virtual time of a world that is dropped.
pub(crate) fn account(elapsed: Duration) {
    SIMULATED.set(SIMULATED.get() + elapsed);
}

/// Runs `scenario` with `count` seeds, or as the environment specifies, and prints the simulated time. `name` is that
/// of the test, `file::function`.
///
/// # Panics
/// If a scenario panics. The panic is resumed after the seed and the command that repeats it were printed.
pub fn run(name: &str, count: u64, scenario: impl Fn(u64)) {
    let (seeds, before) = (seeds(count), SIMULATED.get());
    for seed in seeds.clone() {
        // State that a failed scenario leaves behind is discarded with it.
        let Err(failure) = panic::catch_unwind(AssertUnwindSafe(|| scenario(seed))) else {
            continue;
        };
        eprintln!("\nseed {seed} of {name} failed; repeat it with");
        eprintln!("    {}\n", command(name, seed));
        panic::resume_unwind(failure);
    }
    let simulated = SIMULATED.get() - before;
    let count = seeds.end - seeds.start;
    eprintln!(
        "{name}: {count} seeds, {} simulated seconds",
        simulated.as_secs()
    );
}

fn command(name: &str, seed: u64) -> String {
    match name.split_once("::") {
        Some((file, test)) => {
            format!("{SEED}={seed} cargo test -p taran-sim --test {file} -- --exact {test}")
        }
        None => format!("{SEED}={seed} cargo test -p taran-sim {name}"),
    }
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match (number(SEED), number(SEEDS)) {
        (Some(seed), _) => seed..seed.saturating_add(1),
        (None, Some(0)) => panic!("{SEEDS}=0 runs nothing"),
        (None, configured) => 0..configured.unwrap_or(count),
    }
}

/// Returns the number in an environment variable. An invalid number panics, because falling back to the default would
/// run something else than requested.
fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable}={text} is not a number"),
    }
}

/// Defines a test that runs a scenario with a number of seeds: `seeded!(name, 40, |seed| { .. });`.
#[macro_export]
macro_rules! seeded {
    ($(#[$attribute:meta])* $name:ident, $count:expr, $scenario:expr) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            $crate::seeds::run(concat!(module_path!(), "::", stringify!($name)), $count, $scenario);
        }
    };
}
