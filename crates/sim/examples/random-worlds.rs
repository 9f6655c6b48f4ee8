//! Plays random stories, many or one; `cargo xtask sim` runs it. See docs/testing.md.

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use taran_sim::story::{self, Coverage, Failure, Plan};

/// Random worlds, each from a seed, with everything checked that must always hold.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask sim")]
struct Arguments {
    /// How many seeds: 100, or with --minutes as many as there is time for.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first one.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Begin no more stories after this time.
    #[arg(long, value_parser = minutes)]
    minutes: Option<Duration>,
    /// How many threads.
    #[arg(long, default_value = "1")]
    jobs: NonZeroUsize,
    /// Play the story in this file instead.
    #[arg(long)]
    story: Option<PathBuf>,
    /// Print the story of the first seed, and play nothing.
    #[arg(long)]
    print: bool,
    /// For how many seconds a story that fails is made short; 0 leaves it as it is.
    #[arg(long, default_value_t = 120)]
    shrink: u64,
    /// End after so many failures.
    #[arg(long, default_value = "10")]
    failures: NonZeroUsize,
}

/// A time in which something can be played.
fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: Option<f64> = text.parse().ok();
    let time = minutes.and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of minutes above 0 is needed".to_owned())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    story::silence_panics();
    if arguments.print {
        print!("{}", Plan::random(arguments.seed).to_text());
        return ExitCode::SUCCESS;
    }
    match &arguments.story {
        Some(file) => replay(&arguments, file),
        None => play_many(&arguments),
    }
}

/// Plays the story in a file.
fn replay(arguments: &Arguments, file: &PathBuf) -> ExitCode {
    let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let plan = read.and_then(|text| Plan::from_text(&text).map_err(|error| error.to_string()));
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    match story::attempt(&plan) {
        Ok(coverage) => {
            println!("{coverage}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            report(arguments, &file.display().to_string(), &plan, &failure);
            ExitCode::FAILURE
        }
    }
}

/// What all threads have in common.
struct Run {
    began: Instant,
    next: AtomicU64,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    seeds: u64,
    coverage: Coverage,
    failed: Vec<(u64, Failure)>,
    said: Option<Instant>,
    /// CPU time of all threads together, without that for making failures short.
    busy: Duration,
}

fn play_many(arguments: &Arguments) -> ExitCode {
    let run = Run {
        began: Instant::now(),
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
    /// The seed after the last one.
    fn end(&self) -> u64 {
        let seeds = match (self.seeds, self.minutes) {
            (Some(seeds), _) => seeds,
            (None, Some(_)) => u64::MAX,
            (None, None) => 100,
        };
        self.seed.saturating_add(seeds)
    }
}

impl Run {
    fn work(&self, arguments: &Arguments) {
        let end = arguments.end();
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let is_late = (arguments.minutes).is_some_and(|time| self.began.elapsed() > time);
            if seed >= end || is_late || self.results().failed.len() >= arguments.failures.get() {
                return;
            }
            self.play(arguments, seed);
        }
    }

    fn play(&self, arguments: &Arguments, seed: u64) {
        let (plan, began) = (Plan::random(seed), cpu_time());
        let played = story::attempt(&plan);
        let mut results = self.results();
        results.busy += cpu_time().saturating_sub(began);
        results.seeds += 1;
        match played {
            Ok(coverage) => results.coverage.merge(&coverage),
            Err(failure) => {
                let is_known = results
                    .failed
                    .iter()
                    .any(|(_, known)| known.kind == failure.kind);
                results.failed.push((seed, failure.clone()));
                drop(results);
                println!(
                    "seed {seed} fails, and does so again with: cargo xtask sim --seeds 1 --seed {seed}"
                );
                if is_known {
                    println!("  as one before: {}", failure.kind);
                } else {
                    report(arguments, &format!("seed-{seed}"), &plan, &failure);
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
        println!("\nwhat happened:\n{}", results.coverage);
        println!("{}", results.summary());
        for (seed, failure) in &results.failed {
            println!("  seed {seed}: {}", failure.kind);
        }
        if results.seeds == 0 {
            println!("nothing was played: that proves nothing");
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
            .said
            .is_none_or(|said| said.elapsed() > Duration::from_secs(10));
        if is_due {
            println!("{}", self.summary());
            self.said = Some(Instant::now());
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

/// CPU time of this thread; Linux counts it in nanoseconds.
fn cpu_time() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = counted
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Makes a story that fails short, writes it to a file and prints it.
fn report(arguments: &Arguments, name: &str, plan: &Plan, failure: &Failure) {
    println!("{}", failure.text);
    let mut plan = plan.clone();
    if arguments.shrink > 0 {
        let until = Instant::now() + Duration::from_secs(arguments.shrink);
        let is_over = |_| Instant::now() >= until;
        let shrunk = story::shrink(&plan, failure, is_over, |plan| story::attempt(plan).err());
        println!(
            "made short with {} attempts, from {} events to {}; it then fails with:\n{}",
            shrunk.attempts,
            plan.events.len(),
            shrunk.plan.events.len(),
            shrunk.failure.text
        );
        plan = shrunk.plan;
    }
    let file = std::env::temp_dir().join(format!("taran-{}.story", name.replace('/', "-")));
    match std::fs::write(&file, plan.to_text()) {
        Ok(()) => println!(
            "the story again: cargo xtask sim --story {}",
            file.display()
        ),
        Err(error) => eprintln!("{}: {error}", file.display()),
    }
    println!("{}", plan.to_text());
}
