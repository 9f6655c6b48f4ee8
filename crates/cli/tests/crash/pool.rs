// SPDX-License-Identifier: Apache-2.0
//! Runs many victims concurrently: each slot starts one, kills it, and starts the next.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::victim::{KillPoint, VictimSpec};

/// Maximum time between the readiness of a victim and its kill.
const MAX_LIFETIME: Duration = Duration::from_millis(150);

/// Victims to be killed, and the results so far.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Specification of all victims.
    spec: VictimSpec,
    kills: u64,
    next: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// Results of the victims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Number of victims per kill point.
    pub(crate) kills_by_point: BTreeMap<KillPoint, u64>,
    /// Number of victims that timed out on a busy machine before they were killed.
    pub(crate) starved: u64,
    /// Failures reported by victims.
    pub(crate) failures: Vec<String>,
}

impl Pool {
    /// Creates a pool. `spec` is the specification of all victims, except for number and seed, which are derived from
    /// it.
    pub(crate) fn new(spec: VictimSpec, kills: u64) -> Pool {
        Pool {
            spec,
            kills,
            next: AtomicU64::new(0),
            outcome: Mutex::default(),
        }
    }

    /// Kills victims in `slots` threads until all are dead; calls `inspect` after each with its number.
    pub(crate) fn run(&self, slots: u64, inspect: impl Fn(u64) + Sync) -> Outcome {
        thread::scope(|scope| {
            for _ in 0..slots {
                scope.spawn(|| {
                    while let Some(spec) = self.next_spec() {
                        self.run_victim(&spec);
                        inspect(spec.number);
                    }
                });
            }
        });
        self.outcome.lock().unwrap().clone()
    }

    fn next_spec(&self) -> Option<VictimSpec> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let failed = !self.outcome.lock().unwrap().failures.is_empty();
        (number < self.kills && !failed).then(|| VictimSpec {
            number,
            seed: self.spec.seed.wrapping_add(number),
            ..self.spec.clone()
        })
    }

    fn run_victim(&self, spec: &VictimSpec) {
        let mut random = fastrand::Rng::with_seed(!spec.seed);
        let victim = Victim::start(spec);
        let (mut output_text, life) = match spec.kill_point() {
            KillPoint::Startup => (String::new(), MAX_LIFETIME / 4),
            KillPoint::RandomOps => (victim.until("READY"), MAX_LIFETIME),
            _ => (victim.until("HERE"), Duration::ZERO),
        };
        // The time of the kill is random; the sleep waits for nothing.
        thread::sleep(life.mul_f64(random.f64()));
        output_text += &victim.kill();
        let mut outcome = self.outcome.lock().unwrap();
        *outcome.kills_by_point.entry(spec.kill_point()).or_default() += 1;
        outcome.starved += u64::from(output_text.contains("STARVED"));
        if output_text.contains("FAILED") || output_text.contains("panicked") {
            outcome.failures.push(format!(
                "victim {} with seed {} ({:?}):\n{output_text}",
                spec.number,
                spec.seed,
                spec.kill_point()
            ));
        }
    }
}

/// A victim process. Its standard output and error are collected.
struct Victim {
    child: Mutex<Child>,
    output: Mutex<BufReader<ChildStdout>>,
}

impl Victim {
    fn start(spec: &VictimSpec) -> Victim {
        let mut child = spec
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        Victim {
            child: Mutex::new(child),
            output: Mutex::new(BufReader::new(output)),
        }
    }

    /// Reads until the process prints this word, or reports a failure, or ends.
    fn until(&self, word: &str) -> String {
        let mut output_text = String::new();
        let mut output = self.output.lock().unwrap();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).unwrap_or(0) == 0 {
                return output_text + "FAILED: ended too soon";
            }
            output_text += &line;
            if [word, "FAILED", "STARVED"]
                .iter()
                .any(|word| line.starts_with(word))
            {
                return output_text;
            }
        }
    }

    /// Kills the process and returns its remaining output.
    fn kill(self) -> String {
        let mut child = self.child.into_inner().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut output_text = String::new();
        let _ = self
            .output
            .into_inner()
            .unwrap()
            .read_to_string(&mut output_text);
        if let Some(mut errors) = child.stderr.take() {
            let _ = errors.read_to_string(&mut output_text);
        }
        output_text
    }
}
