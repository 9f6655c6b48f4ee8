//! Running a story with many seeds, and saying how to repeat the one that failed.
//!
//! `TARAN_SIM_SEED=n` runs that seed only, `TARAN_SIM_SEEDS=n` runs n seeds instead of the default number, and
//! `TARAN_SIM_TRACE=1` prints all that happens.

use std::cell::Cell;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

/// One seed instead of all.
const ONE: &str = "TARAN_SIM_SEED";
/// Another number of seeds.
const COUNT: &str = "TARAN_SIM_SEEDS";

thread_local! {
    /// Virtual time that worlds of this thread have seen.
    static SIMULATED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A world has come to its end after this time.
pub(crate) fn account(elapsed: Duration) {
    SIMULATED.set(SIMULATED.get() + elapsed);
}

/// Runs `story` with `count` seeds, or as the environment says, and prints how much time it has simulated. `name` is that of the test, `file::function`.
///
/// # Panics
/// If a story panics: its panic, after the seed and the command that repeats it were printed.
pub fn run(name: &str, count: u64, story: impl Fn(u64)) {
    let (seeds, before) = (seeds(count), SIMULATED.get());
    for seed in seeds.clone() {
        // What a story leaves behind is thrown away with it.
        let Err(failure) = panic::catch_unwind(AssertUnwindSafe(|| story(seed))) else {
            continue;
        };
        eprintln!("\nseed {seed} of {name} failed; it happens again with");
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
            format!("{ONE}={seed} cargo test -p taran-sim --test {file} -- --exact {test}")
        }
        None => format!("{ONE}={seed} cargo test -p taran-sim {name}"),
    }
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match (number(ONE), number(COUNT)) {
        (Some(seed), _) => seed..seed.saturating_add(1),
        (None, Some(0)) => panic!("{COUNT}=0 would prove nothing"),
        (None, count_wanted) => 0..count_wanted.unwrap_or(count),
    }
}

/// A variable that is set and is no number would silently run something else than was asked for.
fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable}={text} is not a number"),
    }
}

/// A test that runs a story with a number of seeds: `seeded!(name, 40, |seed| { .. });`.
#[macro_export]
macro_rules! seeded {
    ($(#[$attribute:meta])* $name:ident, $count:expr, $story:expr) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            $crate::seeds::run(concat!(module_path!(), "::", stringify!($name)), $count, $story);
        }
    };
}
