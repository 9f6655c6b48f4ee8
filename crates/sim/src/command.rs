// SPDX-License-Identifier: Apache-2.0
//! The command that runs random scenarios of suites, many or one. `cargo xtask sim` starts a program with [`main`] and
//! the suites that it knows; see docs/testing.md.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::scenario::{self, Coverage, Failure, Scenario, Suite};

/// Run random scenarios, each from a seed, and check all invariants.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask sim")]
struct Arguments {
    /// Suite of the scenarios: the first one by default, and with --scenario that of the file.
    #[arg(long)]
    suite: Option<String>,
    /// Number of seeds: 100 by default, unlimited with --minutes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Start no more scenarios after this time.
    #[arg(long, value_parser = minutes)]
    minutes: Option<Duration>,
    /// Number of threads.
    #[arg(long, default_value = "1")]
    jobs: NonZeroUsize,
    /// Run the scenario in this file instead.
    #[arg(long)]
    scenario: Option<PathBuf>,
    /// Print the scenario of the first seed without running it.
    #[arg(long)]
    print: bool,
    /// Seconds spent on shrinking a failed scenario; 0 disables shrinking.
    #[arg(long, default_value_t = 120)]
    shrink: u64,
    /// Stop after this number of failures.
    #[arg(long, default_value = "10")]
    failures: NonZeroUsize,
}

/// Parses a positive number of minutes.
fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: Option<f64> = text.parse().ok();
    let time = minutes.and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "a positive number of minutes is required".to_owned())
}

/// Runs the command with the arguments of this process.
///
/// # Panics
/// If there is no suite.
#[must_use]
pub fn main(suites: &[Suite]) -> ExitCode {
    let arguments = Arguments::parse();
    scenario::silence_panics();
    if let Some(file) = &arguments.scenario {
        return replay(&arguments, suites, file);
    }
    let name = arguments.suite.as_deref();
    let suite = match find(suites, name.unwrap_or(suites[0].name())) {
        Ok(suite) => suite,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if arguments.print {
        print!("{}", suite.random(arguments.seed).to_text());
        return ExitCode::SUCCESS;
    }
    run_many(&arguments, suite)
}

/// Returns the suite with a name.
fn find<'s>(suites: &'s [Suite], name: &str) -> Result<&'s Suite, String> {
    let found = suites.iter().find(|suite| suite.name() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = suites.iter().map(Suite::name).collect();
        format!("no suite `{name}` here, only {}", names.join(", "))
    })
}

/// Runs the scenario in a file.
fn replay(arguments: &Arguments, suites: &[Suite], file: &PathBuf) -> ExitCode {
    let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let spec = read.and_then(|text| Scenario::from_text(&text).map_err(|error| error.to_string()));
    let found = spec.and_then(|spec| Ok((find(suites, &spec.suite)?, spec)));
    let (suite, spec) = match found {
        Ok(found) => found,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    match suite.run(&spec) {
        Ok(coverage) => {
            println!("{coverage}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            report(
                arguments,
                suite,
                &file.display().to_string(),
                &spec,
                &failure,
            );
            ExitCode::FAILURE
        }
    }
}

/// State shared by all threads.
struct Run<'s> {
    suite: &'s Suite,
    started_at: Instant,
    next: AtomicU64,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    seeds: u64,
    coverage: Coverage,
    failed: Vec<(u64, Failure)>,
    last_report: Option<Instant>,
    /// CPU time of all threads together, without shrinking.
    busy: Duration,
}

fn run_many(arguments: &Arguments, suite: &Suite) -> ExitCode {
    let run = Run {
        suite,
        started_at: Instant::now(),
        next: AtomicU64::new(arguments.seed),
        results: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.get() {
            scope.spawn(|| run.work(arguments));
        }
    });
    run.conclude()
}

impl Arguments {
    /// Returns the seed after the last one.
    fn end(&self) -> u64 {
        let seeds = match (self.seeds, self.minutes) {
            (Some(seeds), _) => seeds,
            (None, Some(_)) => u64::MAX,
            (None, None) => 100,
        };
        self.seed.saturating_add(seeds)
    }
}

impl Run<'_> {
    fn work(&self, arguments: &Arguments) {
        let end = arguments.end();
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let is_late = (arguments.minutes).is_some_and(|time| self.started_at.elapsed() > time);
            if seed >= end || is_late || self.results().failed.len() >= arguments.failures.get() {
                return;
            }
            self.run_seed(arguments, seed);
        }
    }

    fn run_seed(&self, arguments: &Arguments, seed: u64) {
        let (spec, started_at) = (self.suite.random(seed), cpu_time());
        let outcome = self.suite.run(&spec);
        let mut results = self.results();
        results.busy += cpu_time().saturating_sub(started_at);
        results.seeds += 1;
        match outcome {
            Ok(coverage) => results.coverage.merge(&coverage),
            Err(failure) => {
                let is_known = results
                    .failed
                    .iter()
                    .any(|(_, known)| known.kind == failure.kind);
                results.failed.push((seed, failure.clone()));
                drop(results);
                println!(
                    "seed {seed} failed; repeat it with: cargo xtask sim --suite {} --seeds 1 --seed {seed}",
                    self.suite.name()
                );
                if is_known {
                    println!("  same failure as before: {}", failure.kind);
                } else {
                    report(
                        arguments,
                        self.suite,
                        &format!("seed-{seed}"),
                        &spec,
                        &failure,
                    );
                }
                results = self.results();
            }
        }
        results.progress();
    }

    fn results(&self) -> std::sync::MutexGuard<'_, Results> {
        self.results
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn conclude(&self) -> ExitCode {
        let results = self.results();
        println!("\ncoverage:\n{}", results.coverage);
        println!("{}", results.summary());
        for (seed, failure) in &results.failed {
            println!("  seed {seed}: {}", failure.kind);
        }
        if results.seeds == 0 {
            println!("no scenario was run: that proves nothing");
            return ExitCode::FAILURE;
        }
        if results.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl Results {
    fn progress(&mut self) {
        let is_due = self
            .last_report
            .is_none_or(|last_report| last_report.elapsed() > Duration::from_secs(10));
        if is_due {
            println!("{}", self.summary());
            self.last_report = Some(Instant::now());
        }
    }

    fn summary(&self) -> String {
        let simulated = self.coverage.simulated.as_secs_f64();
        format!(
            "{} seeds, {:.2} simulated hours ({:.0} in one hour of CPU time), {} events, {} failures",
            self.seeds,
            simulated / 3_600.0,
            simulated / self.busy.as_secs_f64().max(1e-9),
            self.coverage.events,
            self.failed.len()
        )
    }
}

/// Returns the CPU time of this thread; Linux counts it in nanoseconds.
fn cpu_time() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = counted
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Shrinks a failed scenario, writes it to a file and prints it.
fn report(arguments: &Arguments, suite: &Suite, name: &str, spec: &Scenario, failure: &Failure) {
    println!("{}", failure.text);
    let mut spec = spec.clone();
    if arguments.shrink > 0 {
        let until = Instant::now() + Duration::from_secs(arguments.shrink);
        let is_over = |_| Instant::now() >= until;
        let shrunk = suite.shrink(&spec, failure, is_over);
        println!(
            "shrunk with {} attempts from {} operations to {}; the remaining scenario fails with:\n{}",
            shrunk.attempts,
            spec.ops.len(),
            shrunk.scenario.ops.len(),
            shrunk.failure.text
        );
        spec = shrunk.scenario;
    }
    let file = std::env::temp_dir().join(format!("taran-{}.scenario", name.replace('/', "-")));
    match std::fs::write(&file, spec.to_text()) {
        Ok(()) => println!(
            "repeat it with: cargo xtask sim --scenario {}",
            file.display()
        ),
        Err(error) => eprintln!("{}: {error}", file.display()),
    }
    println!("{}", spec.to_text());
}
