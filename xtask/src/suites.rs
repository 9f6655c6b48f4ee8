//! The expensive test suites, declared once: the gate runs a slice of those that a change can affect
//! (`cargo xtask slices`), the nightly run all of them in full (`cargo xtask nightly`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Names the commit that changes are counted from; overrides `BASE_FILE`.
const BASE_VARIABLE: &str = "TARAN_GATE_BASE";

/// Holds the last landed commit. A change that does not update it only makes the gate run more.
const BASE_FILE: &str = ".ci/landed";

/// Changes below these paths can affect any suite.
const COMMON: &[&str] = &["Cargo.toml", "Cargo.lock", ".cargo/", ".ci/", "xtask/"];

const CORE: &str = "crates/core/";
const PROTOCOL: &str = "crates/protocol/";
const NET: &str = "crates/net/";
const DRIVER: &str = "crates/driver/";
const CLIENT: &str = "crates/client/";
const TRANSPORT: &[&str] = &[CORE, PROTOCOL, NET, DRIVER, CLIENT];

/// Fuzz targets of `taran-sbe`; all others belong to the transport.
const SBE_TARGETS: &[&str] = &["sbe_codecs", "sbe_decode", "sbe_schema"];

/// A test suite that is too expensive to run in full for each change.
struct Suite {
    name: &'static str,
    /// Path prefixes whose changes the suite tests, besides `COMMON`.
    paths: &'static [&'static str],
    /// Arguments of `cargo` for the slice in the gate; empty for a suite that runs nightly only.
    slice: &'static [&'static str],
    /// Upper bound for the slice, build included.
    slice_timeout: Duration,
    /// Arguments of `cargo` for the full run.
    full: &'static [&'static str],
    /// Upper bound for the full run, build included.
    full_timeout: Duration,
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

const SUITES: &[Suite] = &[
    Suite {
        name: "loom core",
        paths: &[CORE],
        slice: &["xtask", "loom", "taran-core"],
        slice_timeout: minutes(10),
        full: &["xtask", "loom", "taran-core"],
        full_timeout: minutes(10),
    },
    Suite {
        name: "loom protocol",
        paths: &[CORE, PROTOCOL],
        slice: &["xtask", "loom", "taran-protocol"],
        slice_timeout: minutes(10),
        full: &["xtask", "loom", "taran-protocol"],
        full_timeout: minutes(10),
    },
    Suite {
        name: "loom driver",
        paths: &[CORE, DRIVER],
        slice: &["xtask", "loom", "taran-driver"],
        slice_timeout: minutes(10),
        full: &["xtask", "loom", "taran-driver"],
        full_timeout: minutes(10),
    },
    Suite {
        name: "AddressSanitizer core",
        paths: &[CORE],
        slice: &["xtask", "asan", "taran-core"],
        slice_timeout: minutes(15),
        full: &["xtask", "asan", "taran-core"],
        full_timeout: minutes(15),
    },
    Suite {
        name: "AddressSanitizer net",
        paths: &[CORE, NET],
        slice: &["xtask", "asan", "taran-net"],
        slice_timeout: minutes(15),
        full: &["xtask", "asan", "taran-net"],
        full_timeout: minutes(15),
    },
    Suite {
        name: "AddressSanitizer client",
        paths: TRANSPORT,
        slice: &["xtask", "asan", "taran"],
        slice_timeout: minutes(15),
        full: &["xtask", "asan", "taran"],
        full_timeout: minutes(15),
    },
    Suite {
        name: "ThreadSanitizer",
        paths: &[CORE],
        slice: &["xtask", "tsan", "taran-core"],
        slice_timeout: minutes(15),
        full: &["xtask", "tsan"],
        full_timeout: minutes(60),
    },
    Suite {
        name: "Miri",
        paths: &[CORE],
        slice: &["xtask", "miri", "queue"],
        slice_timeout: minutes(15),
        full: &["xtask", "miri"],
        full_timeout: minutes(120),
    },
    Suite {
        name: "fuzz transport",
        paths: &[CORE, PROTOCOL, NET, DRIVER, CLIENT, "crates/sim/", "fuzz/"],
        slice: &[
            "xtask", "fuzz", "--except", "sbe", "--runs", "1000", "--seed", "1",
        ],
        slice_timeout: minutes(15),
        full: &[
            "xtask",
            "fuzz",
            "--except",
            "sbe",
            "--fast",
            "--seconds",
            "300",
        ],
        full_timeout: minutes(120),
    },
    Suite {
        name: "fuzz SBE",
        paths: &["crates/sbe/", "fuzz/"],
        slice: &[
            "xtask",
            "fuzz",
            "sbe_codecs",
            "sbe_decode",
            "sbe_schema",
            "--runs",
            "1000",
            "--seed",
            "1",
        ],
        slice_timeout: minutes(15),
        full: &[
            "xtask",
            "fuzz",
            "sbe_codecs",
            "sbe_decode",
            "sbe_schema",
            "--fast",
            "--seconds",
            "300",
        ],
        full_timeout: minutes(30),
    },
    Suite {
        name: "fuzz with AddressSanitizer",
        paths: &[],
        slice: &[],
        slice_timeout: Duration::ZERO,
        full: &["xtask", "fuzz", "--asan", "--runs", "2000"],
        full_timeout: minutes(30),
    },
    Suite {
        name: "soak",
        paths: &[
            CORE,
            PROTOCOL,
            NET,
            DRIVER,
            CLIENT,
            "crates/cli/tests/soak",
            "crates/cli/tests/namespaces",
            "interop/",
        ],
        slice: &["xtask", "soak", "--seconds", "45"],
        slice_timeout: minutes(15),
        full: &["xtask", "soak", "--minutes", "30"],
        full_timeout: minutes(50),
    },
    Suite {
        name: "random worlds",
        paths: &[CORE, PROTOCOL, NET, DRIVER, CLIENT, "crates/sim/"],
        slice: &["xtask", "sim", "--seeds", "40"],
        slice_timeout: minutes(15),
        full: &["xtask", "sim", "--seeds", "1000", "--jobs", "2"],
        full_timeout: minutes(60),
    },
    Suite {
        name: "killed clients",
        paths: &[],
        slice: &[],
        slice_timeout: Duration::ZERO,
        full: &["xtask", "kills"],
        full_timeout: minutes(30),
    },
    Suite {
        name: "killed drivers",
        paths: &[],
        slice: &[],
        slice_timeout: Duration::ZERO,
        full: &["xtask", "kills", "--drivers", "100"],
        full_timeout: minutes(60),
    },
    Suite {
        name: "churn",
        paths: &[],
        slice: &[],
        slice_timeout: Duration::ZERO,
        full: &["xtask", "churn", "--rounds", "100"],
        full_timeout: minutes(30),
    },
];

/// Outcome of one suite.
enum Outcome {
    Passed(Duration),
    Failed(Duration, String),
    /// The change does not affect the suite.
    Unaffected,
}

/// `cargo xtask slices [--base REV | --all] [--list]`.
pub(crate) fn slices(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (list, words) = match words.split_last() {
        Some((&"--list", rest)) => (true, rest),
        _ => (false, &words[..]),
    };
    let changed = match words {
        [] => base().and_then(|base| changed_since(&base)),
        ["--all"] => None,
        ["--base", revision] => Some(
            changed_since(revision)
                .ok_or_else(|| format!("git does not know the revision {revision}"))?,
        ),
        _ => return Err("usage: cargo xtask slices [--base REV | --all] [--list]".to_owned()),
    };
    if changed.is_none() {
        println!("no base commit: every slice runs");
    }
    let is_affected = |suite: &Suite| {
        changed
            .as_ref()
            .is_none_or(|paths| paths.iter().any(|path| suite.tests(path)))
    };
    let with_slice = SUITES.iter().filter(|suite| !suite.slice.is_empty());
    if list {
        for suite in with_slice {
            let mark = if is_affected(suite) {
                "runs"
            } else {
                "unaffected"
            };
            println!("{:<28} {mark}", suite.name);
        }
        return Ok(());
    }
    run_all(with_slice, |suite| {
        is_affected(suite).then_some((suite.slice, suite.slice_timeout))
    })
}

/// `cargo xtask nightly [--only NAME,...] [--list]`.
pub(crate) fn nightly(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let only: Option<Vec<&str>> = match words[..] {
        [] => None,
        ["--list"] => {
            for suite in SUITES {
                let bound = suite.full_timeout.as_secs() / 60;
                println!(
                    "{:<28} cargo {} (at most {bound} minutes)",
                    suite.name,
                    suite.full.join(" ")
                );
            }
            return Ok(());
        }
        ["--only", names] => Some(names.split(',').map(str::trim).collect()),
        _ => return Err("usage: cargo xtask nightly [--only NAME,...] [--list]".to_owned()),
    };
    if let Some(names) = &only {
        let is_suite = |name: &&&str| !SUITES.iter().any(|suite| suite.name == **name);
        if let Some(unknown) = names.iter().find(is_suite) {
            let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            return Err(format!(
                "no suite {unknown:?}; there are: {}",
                known.join(", ")
            ));
        }
    }
    let chosen = SUITES.iter().filter(|suite| {
        only.as_ref()
            .is_none_or(|names| names.contains(&suite.name))
    });
    let result = run_all(chosen, |suite| Some((suite.full, suite.full_timeout)));
    println!(
        "commit {}",
        git(&["describe", "--always", "--dirty"]).unwrap_or_default()
    );
    result
}

impl Suite {
    /// Returns true if the suite tests what is at this path.
    fn tests(&self, path: &str) -> bool {
        if path.ends_with(".md") {
            return false;
        }
        let mut prefixes = COMMON.iter().chain(self.paths);
        prefixes.any(|prefix| path.starts_with(prefix))
    }
}

/// Runs suites one after the other, failed ones do not stop the rest, and prints a summary.
fn run_all<'a>(
    suites: impl Iterator<Item = &'a Suite>,
    choose: impl Fn(&'a Suite) -> Option<(&'a [&'a str], Duration)>,
) -> Result<(), String> {
    let mut outcomes = Vec::new();
    for suite in suites {
        let Some((arguments, timeout)) = choose(suite) else {
            outcomes.push((suite.name, Outcome::Unaffected));
            continue;
        };
        println!("\n-- {}: cargo {}", suite.name, arguments.join(" "));
        let started = Instant::now();
        let result = run_bounded(arguments, timeout);
        let took = started.elapsed();
        outcomes.push(match result {
            Ok(status) if status.success() => (suite.name, Outcome::Passed(took)),
            Ok(status) => (suite.name, Outcome::Failed(took, describe(status, timeout))),
            Err(reason) => (suite.name, Outcome::Failed(took, reason)),
        });
    }
    println!();
    let mut failed = Vec::new();
    for (name, outcome) in outcomes {
        let text = match outcome {
            Outcome::Passed(took) => format!("passed in {} s", took.as_secs()),
            Outcome::Failed(took, reason) => {
                failed.push(name);
                format!("FAILED after {} s: {reason}", took.as_secs())
            }
            Outcome::Unaffected => "not affected by the change".to_owned(),
        };
        println!("{name:<28} {text}");
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Exit status of `timeout` for a command that it ended.
const TIMED_OUT: i32 = 124;

/// `timeout` ends the whole process group, which `cargo` alone would leave behind.
fn run_bounded(arguments: &[&str], timeout: Duration) -> Result<ExitStatus, String> {
    Command::new("timeout")
        .args(["--kill-after=30", &timeout.as_secs().to_string(), "cargo"])
        .args(arguments)
        .current_dir(root())
        .status()
        .map_err(|error| format!("`timeout` cannot be run: {error}"))
}

fn describe(status: ExitStatus, timeout: Duration) -> String {
    if status.code() == Some(TIMED_OUT) {
        format!("not done within {} s", timeout.as_secs())
    } else {
        status.to_string()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The commit that changes are counted from, if one is named.
fn base() -> Option<String> {
    std::env::var(BASE_VARIABLE)
        .or_else(|_| std::fs::read_to_string(root().join(BASE_FILE)))
        .ok()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// Paths that differ between the revision and the work tree; none if git does not know the revision.
fn changed_since(revision: &str) -> Option<Vec<String>> {
    let names = git(&["diff", "--name-only", "--no-renames", revision, "--"])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    Some(
        names
            .lines()
            .chain(untracked.lines())
            .map(str::to_owned)
            .collect(),
    )
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Returns true if the fuzz target belongs to `taran-sbe`.
pub(crate) fn is_sbe_target(target: &str) -> bool {
    SBE_TARGETS.contains(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected(path: &str) -> Vec<&'static str> {
        let suites = SUITES.iter().filter(|suite| !suite.slice.is_empty());
        suites
            .filter(|suite| suite.tests(path))
            .map(|suite| suite.name)
            .collect()
    }

    #[test]
    fn suite_tests_change_in_page_affects_none() {
        assert!(affected("docs/testing.md").is_empty());
        assert!(affected("crates/core/README.md").is_empty());
    }

    #[test]
    fn suite_tests_change_in_sbe_affects_its_fuzz_targets_only() {
        assert_eq!(affected("crates/sbe/src/lib.rs"), ["fuzz SBE"]);
    }

    #[test]
    fn suite_tests_change_in_core_affects_all_of_the_transport() {
        let with_slice = SUITES
            .iter()
            .filter(|suite| !suite.slice.is_empty())
            .count();
        assert_eq!(affected("crates/core/src/queue.rs").len(), with_slice - 1);
    }

    #[test]
    fn suite_tests_change_in_lock_file_affects_all() {
        let with_slice = SUITES
            .iter()
            .filter(|suite| !suite.slice.is_empty())
            .count();
        assert_eq!(affected("Cargo.lock").len(), with_slice);
    }

    #[test]
    fn suites_name_paths_that_exist() {
        for path in SUITES.iter().flat_map(|suite| suite.paths).chain(COMMON) {
            assert!(root().join(path).exists(), "{path}");
        }
    }

    #[test]
    fn changed_since_unknown_revision_is_none() {
        assert_eq!(
            changed_since("0000000000000000000000000000000000000000"),
            None
        );
        assert_eq!(
            changed_since("HEAD").is_some(),
            git(&["rev-parse", "HEAD"]).is_some()
        );
    }
}
