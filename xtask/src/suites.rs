// SPDX-License-Identifier: Apache-2.0
//! The expensive test suites, declared once: the gate runs a slice of those that a change can affect
//! (`cargo xtask slices`), the nightly run all of them in full (`cargo xtask nightly`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::changes::{changed_since, git};
use crate::sources::root;

/// Names the commit that changes are counted from; overrides `BASE_FILE`.
const BASE_VARIABLE: &str = "TARAN_GATE_BASE";

/// Holds the last landed commit. A change that does not update it only makes the gate run more.
const BASE_FILE: &str = ".ci/landed";

/// Changes of these paths can affect any suite.
const COMMON: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/",
    ".ci/run",
    "xtask/Cargo.toml",
];

const CORE: &str = "crates/core/";
const PROTOCOL: &str = "crates/protocol/";
const NET: &str = "crates/net/";
const DRIVER: &str = "crates/driver/";
const SIM: &str = "crates/sim/";
const STORAGE: &str = "crates/storage/";
const FUZZ: &str = "fuzz/";

/// The tasks that run several suites.
const SANITIZERS: &str = "xtask/src/sanitizers.rs";
const FUZZER: &str = "xtask/src/fuzz";
const SIMULATOR: &str = "xtask/src/sim.rs";

/// Driver, client and all that these build on.
const TRANSPORT: &[&str] = &[CORE, PROTOCOL, NET, DRIVER, "crates/client/"];

/// Time for loom models, build included.
const LOOM: Duration = minutes(10);

/// Time for a slice, or for a run under AddressSanitizer, build included.
const SLICE: Duration = minutes(15);

/// A test suite that is too expensive to run in full for each change.
struct Suite {
    name: &'static str,
    /// Lists of path prefixes whose changes the suite tests, besides `COMMON`; of no use to a suite without a slice.
    paths: &'static [&'static [&'static str]],
    slice: Slice,
    full: Run,
}

/// Part of a suite that the gate runs.
enum Slice {
    /// The suite runs nightly only.
    Nothing,
    /// The suite is quick enough.
    Everything,
    Part(Run),
}

/// A command with a deadline.
struct Run {
    /// Arguments of `cargo`.
    arguments: &'static [&'static str],
    /// Upper bound, build included.
    timeout: Duration,
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

const fn run(arguments: &'static [&'static str], timeout: Duration) -> Run {
    Run { arguments, timeout }
}

const fn part(arguments: &'static [&'static str]) -> Slice {
    Slice::Part(run(arguments, SLICE))
}

/// Returns a suite that is quick enough to run in full whenever a change affects it.
const fn quick(name: &'static str, paths: &'static [&'static [&'static str]], full: Run) -> Suite {
    Suite {
        name,
        paths,
        slice: Slice::Everything,
        full,
    }
}

/// Returns a suite without a slice.
const fn nightly_only(name: &'static str, full: Run) -> Suite {
    Suite {
        name,
        paths: &[],
        slice: Slice::Nothing,
        full,
    }
}

const SUITES: &[Suite] = &[
    quick(
        "loom core",
        &[&[CORE, SANITIZERS]],
        run(&["xtask", "loom", "taran-core"], LOOM),
    ),
    quick(
        "loom protocol",
        &[&[CORE, PROTOCOL, SANITIZERS]],
        run(&["xtask", "loom", "taran-protocol"], LOOM),
    ),
    quick(
        "loom storage",
        &[&[CORE, STORAGE, SANITIZERS]],
        run(&["xtask", "loom", "taran-storage"], LOOM),
    ),
    quick(
        "loom driver",
        &[&[CORE, DRIVER, SANITIZERS]],
        run(&["xtask", "loom", "taran-driver"], LOOM),
    ),
    quick(
        "AddressSanitizer core",
        &[&[CORE, SANITIZERS]],
        run(&["xtask", "asan", "taran-core"], SLICE),
    ),
    quick(
        "AddressSanitizer net",
        &[&[CORE, NET, SANITIZERS]],
        run(&["xtask", "asan", "taran-net"], SLICE),
    ),
    quick(
        "AddressSanitizer client",
        &[TRANSPORT, &[SANITIZERS]],
        run(&["xtask", "asan", "taran"], SLICE),
    ),
    quick(
        "AddressSanitizer C library",
        &[TRANSPORT, &["crates/capi/", SANITIZERS]],
        run(&["xtask", "asan", "taran-c"], SLICE),
    ),
    Suite {
        name: "ThreadSanitizer",
        paths: &[&[CORE, SANITIZERS]],
        slice: part(&["xtask", "tsan", "taran-core"]),
        full: run(&["xtask", "tsan"], minutes(60)),
    },
    Suite {
        name: "Miri",
        paths: &[&[CORE, SANITIZERS]],
        slice: part(&["xtask", "miri", "taran-core", "queue"]),
        full: run(&["xtask", "miri"], minutes(120)),
    },
    quick(
        "Miri C library",
        &[&[
            "crates/capi/",
            "crates/client/",
            "crates/protocol/src/log/",
            CORE,
            SANITIZERS,
        ]],
        run(&["xtask", "miri", "taran-c"], SLICE),
    ),
    Suite {
        name: "fuzz transport",
        paths: &[TRANSPORT, &[SIM, FUZZ, FUZZER]],
        slice: part(&[
            "xtask",
            "fuzz",
            "--area",
            "transport",
            "--runs",
            "1000",
            "--seed",
            "1",
        ]),
        full: run(
            &[
                "xtask",
                "fuzz",
                "--area",
                "transport",
                "--fast",
                "--seconds",
                "300",
            ],
            minutes(120),
        ),
    },
    Suite {
        name: "fuzz archive",
        paths: &[&[
            "crates/archive/",
            "crates/archive-client/",
            STORAGE,
            FUZZ,
            FUZZER,
        ]],
        slice: part(&[
            "xtask", "fuzz", "--area", "archive", "--runs", "1000", "--seed", "1",
        ]),
        full: run(
            &[
                "xtask",
                "fuzz",
                "--area",
                "archive",
                "--fast",
                "--seconds",
                "300",
            ],
            minutes(60),
        ),
    },
    nightly_only(
        "fuzz cluster",
        run(
            &[
                "xtask",
                "fuzz",
                "--area",
                "cluster",
                "--fast",
                "--seconds",
                "300",
            ],
            minutes(60),
        ),
    ),
    Suite {
        name: "fuzz SBE",
        paths: &[&["crates/sbe/", FUZZ, FUZZER]],
        slice: part(&[
            "xtask", "fuzz", "--area", "sbe", "--runs", "1000", "--seed", "1",
        ]),
        full: run(
            &[
                "xtask",
                "fuzz",
                "--area",
                "sbe",
                "--fast",
                "--seconds",
                "300",
            ],
            minutes(30),
        ),
    },
    Suite {
        name: "fuzz FIX",
        paths: &[&["crates/fix/", FUZZ, FUZZER]],
        slice: part(&[
            "xtask", "fuzz", "--area", "fix", "--runs", "1000", "--seed", "1",
        ]),
        full: run(
            &[
                "xtask",
                "fuzz",
                "--area",
                "fix",
                "--fast",
                "--seconds",
                "300",
            ],
            minutes(30),
        ),
    },
    nightly_only(
        "fuzz with AddressSanitizer",
        run(&["xtask", "fuzz", "--asan", "--runs", "2000"], minutes(30)),
    ),
    Suite {
        name: "soak",
        paths: &[
            TRANSPORT,
            &[
                "crates/cli/tests/soak",
                "crates/cli/tests/namespaces",
                "interop/",
                "xtask/src/soak.rs",
            ],
        ],
        slice: part(&["xtask", "soak", "--seconds", "45"]),
        full: run(&["xtask", "soak", "--minutes", "30"], minutes(50)),
    },
    Suite {
        name: "random worlds",
        paths: &[TRANSPORT, &[SIM, SIMULATOR]],
        slice: part(&["xtask", "sim", "--seeds", "40"]),
        full: run(
            &["xtask", "sim", "--seeds", "1000", "--jobs", "2"],
            minutes(60),
        ),
    },
    Suite {
        name: "consensus",
        paths: &[&["crates/cluster/", "xtask/src/consensus.rs"]],
        slice: part(&["xtask", "consensus", "--seeds", "20000"]),
        full: run(&["xtask", "consensus", "--seeds", "1000000"], minutes(120)),
    },
    Suite {
        name: "archives",
        paths: &[
            TRANSPORT,
            &[
                SIM,
                STORAGE,
                "crates/archive/",
                "crates/archive-client/",
                "xtask/src/archive.rs",
            ],
        ],
        slice: part(&["xtask", "archive", "--seeds", "100"]),
        full: run(&["xtask", "archive", "--seeds", "10000"], minutes(120)),
    },
    Suite {
        name: "full file systems",
        paths: &[TRANSPORT, &[SIM, SIMULATOR]],
        slice: part(&["xtask", "sim", "--suite", "full-memory", "--seeds", "100"]),
        full: run(
            &["xtask", "sim", "--suite", "full-memory", "--seeds", "5000"],
            minutes(30),
        ),
    },
    quick(
        "public API",
        &[
            TRANSPORT,
            &[STORAGE, "docs/api/", "xtask/api/", "xtask/src/api.rs"],
        ],
        run(&["xtask", "api"], SLICE),
    ),
    quick(
        "packaging",
        &[&["packaging/", ".github/", "xtask/src/packaging.rs"]],
        run(&["xtask", "lint-packaging"], minutes(5)),
    ),
    quick(
        "console in a browser",
        &[&[
            "crates/cli/src/console/",
            "crates/cli/src/http/",
            "crates/cli/tests/browser/",
            "xtask/src/browser.rs",
        ]],
        run(&["xtask", "browser"], minutes(5)),
    ),
    quick(
        "Python package",
        &[TRANSPORT, &["bindings/python/", "xtask/src/python.rs"]],
        run(&["xtask", "python"], SLICE),
    ),
    nightly_only("Debian package", run(&["xtask", "deb"], minutes(30))),
    nightly_only("other targets", run(&["xtask", "targets"], minutes(60))),
    nightly_only(
        "property tests",
        run(&["xtask", "properties", "--seeds", "20"], minutes(60)),
    ),
    Suite {
        name: "power cuts",
        paths: &[&[SIM, STORAGE, SIMULATOR]],
        slice: part(&["xtask", "power-cuts", "--cuts", "100000"]),
        full: run(
            &["xtask", "power-cuts", "--cuts", "1000000", "--defects"],
            minutes(30),
        ),
    },
    nightly_only("killed clients", run(&["xtask", "kills"], minutes(30))),
    nightly_only(
        "killed drivers",
        run(&["xtask", "kills", "--drivers", "100"], minutes(60)),
    ),
    nightly_only(
        "killed members",
        run(&["xtask", "kills", "--members", "1000"], minutes(240)),
    ),
    nightly_only(
        "churn",
        run(&["xtask", "churn", "--rounds", "100"], minutes(30)),
    ),
];

/// Outcome of one suite.
#[derive(Debug)]
enum Outcome {
    Passed(Duration),
    /// The suite cannot run on this machine, for this reason.
    Skipped(String),
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
    let with_slice = SUITES.iter().filter(|suite| suite.in_gate().is_some());
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
        suite.in_gate().filter(|_| is_affected(suite))
    })
}

/// `cargo xtask nightly [--only NAME,...] [--list]`.
pub(crate) fn nightly(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let only: Option<Vec<&str>> = match words[..] {
        [] => None,
        ["--list"] => {
            for suite in SUITES {
                let bound = suite.full.timeout.as_secs() / 60;
                println!(
                    "{:<28} cargo {} (at most {bound} minutes)",
                    suite.name,
                    suite.full.arguments.join(" ")
                );
            }
            return Ok(());
        }
        ["--only", names] => Some(names.split(',').map(str::trim).collect()),
        _ => return Err("usage: cargo xtask nightly [--only NAME,...] [--list]".to_owned()),
    };
    if let Some(names) = &only {
        let is_unknown = |name: &&&str| !SUITES.iter().any(|suite| suite.name == **name);
        if let Some(unknown) = names.iter().find(is_unknown) {
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
    let result = run_all(chosen, |suite| Some(&suite.full));
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
        let mut prefixes = COMMON.iter().chain(self.paths.iter().copied().flatten());
        prefixes.any(|prefix| path.starts_with(prefix))
    }

    /// Returns the run for the gate; none for a suite that runs nightly only.
    fn in_gate(&self) -> Option<&Run> {
        match &self.slice {
            Slice::Nothing => None,
            Slice::Everything => Some(&self.full),
            Slice::Part(run) => Some(run),
        }
    }
}

/// Runs suites one after the other, failed ones do not stop the rest, and prints a summary.
fn run_all<'a>(
    suites: impl Iterator<Item = &'a Suite>,
    choose: impl Fn(&'a Suite) -> Option<&'a Run>,
) -> Result<(), String> {
    let mut outcomes = Vec::new();
    for suite in suites {
        let Some(run) = choose(suite) else {
            outcomes.push((suite.name, Outcome::Unaffected));
            continue;
        };
        println!("\n-- {}: cargo {}", suite.name, run.arguments.join(" "));
        outcomes.push((
            suite.name,
            outcome_of("cargo", run.arguments, run.timeout, &skip_report()),
        ));
    }
    println!("\n{}", summary(&outcomes));
    let failed = names_of(&outcomes, |outcome| matches!(outcome, Outcome::Failed(..)));
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {failed}"))
    }
}

/// Returns one line per suite, and the names of the skipped suites in a last line.
fn summary(outcomes: &[(&str, Outcome)]) -> String {
    let mut summary = String::new();
    for (name, outcome) in outcomes {
        let text = match outcome {
            Outcome::Passed(took) => format!("passed in {} s", took.as_secs()),
            Outcome::Skipped(reason) => format!("SKIPPED: {reason}"),
            Outcome::Failed(took, reason) => {
                format!("FAILED after {} s: {reason}", took.as_secs())
            }
            Outcome::Unaffected => "not affected by the change".to_owned(),
        };
        summary += &format!("{name:<28} {text}\n");
    }
    let skipped = names_of(outcomes, |outcome| matches!(outcome, Outcome::Skipped(_)));
    if !skipped.is_empty() {
        summary += &format!("SKIPPED, not tested: {skipped}\n");
    }
    summary
}

fn names_of(outcomes: &[(&str, Outcome)], is_chosen: impl Fn(&Outcome) -> bool) -> String {
    let chosen = outcomes.iter().filter(|(_, outcome)| is_chosen(outcome));
    let names: Vec<&str> = chosen.map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Names the file into which a task writes why it skipped itself, in the environment of a suite.
const SKIP_REPORT: &str = "TARAN_SKIP_REPORT";

fn skip_report() -> PathBuf {
    std::env::temp_dir().join(format!("taran-skipped-{}", std::process::id()))
}

/// Reports to the suite that runs this task, if any, why the task skipped itself.
pub(crate) fn report_skip(reason: &str) -> Result<(), String> {
    std::env::var_os(SKIP_REPORT).map_or(Ok(()), |path| {
        std::fs::write(&path, reason)
            .map_err(|error| format!("{}: {error}", Path::new(&path).display()))
    })
}

/// Exit status of `timeout` for a command that it ended.
const TIMED_OUT: i32 = 124;

/// Runs a command for at most `timeout`. `timeout` ends the whole process group, which `cargo` alone would leave behind.
/// The command is skipped if it succeeds and wrote a reason to the file `report`, which is removed afterwards.
fn outcome_of(program: &str, arguments: &[&str], timeout: Duration, report: &Path) -> Outcome {
    let started = Instant::now();
    let status = Command::new("timeout")
        .args(["--kill-after=30", &timeout.as_secs().to_string(), program])
        .args(arguments)
        .env(SKIP_REPORT, report)
        .current_dir(root())
        .status();
    let took = started.elapsed();
    let skipped = std::fs::read_to_string(report);
    let _ = std::fs::remove_file(report);
    match (status, skipped) {
        (Ok(status), Ok(reason)) if status.success() => Outcome::Skipped(reason),
        (Ok(status), _) if status.success() => Outcome::Passed(took),
        (Ok(status), _) => Outcome::Failed(took, describe(status, timeout)),
        (Err(error), _) => Outcome::Failed(took, format!("`timeout` cannot be run: {error}")),
    }
}

fn describe(status: ExitStatus, timeout: Duration) -> String {
    if status.code() == Some(TIMED_OUT) {
        format!("not done within {} s", timeout.as_secs())
    } else {
        status.to_string()
    }
}

/// The commit that changes are counted from, if one is named.
fn base() -> Option<String> {
    std::env::var(BASE_VARIABLE)
        .or_else(|_| std::fs::read_to_string(root().join(BASE_FILE)))
        .ok()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected(path: &str) -> Vec<&'static str> {
        let suites = SUITES.iter().filter(|suite| suite.in_gate().is_some());
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
    fn suite_tests_change_in_core_affects_all_but_those_without_it() {
        let affected = affected("crates/core/src/queue.rs");
        let with_slice = SUITES.iter().filter(|suite| suite.in_gate().is_some());
        let unaffected: Vec<_> = with_slice
            .map(|suite| suite.name)
            .filter(|name| !affected.contains(name))
            .collect();
        assert_eq!(
            unaffected,
            [
                "fuzz archive",
                "fuzz SBE",
                "fuzz FIX",
                "consensus",
                "packaging",
                "console in a browser",
                "power cuts"
            ]
        );
    }

    #[test]
    fn suite_tests_change_in_lock_file_affects_all() {
        let with_slice = SUITES
            .iter()
            .filter(|suite| suite.in_gate().is_some())
            .count();
        assert_eq!(affected("Cargo.lock").len(), with_slice);
    }

    #[test]
    fn suite_tests_change_in_a_task_affects_the_suites_that_it_runs() {
        assert_eq!(affected("xtask/src/archive.rs"), ["archives"]);
        assert!(affected("xtask/src/licences.rs").is_empty());
        assert!(affected(".ci/landed").is_empty());
    }

    #[test]
    fn suites_name_paths_that_exist() {
        let paths = SUITES.iter().flat_map(|suite| suite.paths);
        for path in paths.copied().flatten().chain(COMMON) {
            assert!(root().join(path).exists(), "{path}");
        }
    }

    /// Outcome of a shell script that is run as a suite.
    fn outcome_of_script(name: &str, script: &str) -> Outcome {
        let report = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let outcome = outcome_of("sh", &["-c", script], minutes(1), &report);
        assert!(!report.exists());
        outcome
    }

    #[test]
    fn suite_that_reports_a_skip_is_skipped_with_its_reason() {
        let script = "printf 'no nightly toolchain' > \"$TARAN_SKIP_REPORT\"";
        let outcome = outcome_of_script("skips", script);
        assert!(
            matches!(&outcome, Outcome::Skipped(reason) if reason == "no nightly toolchain"),
            "{outcome:?}"
        );
        let outcome = outcome_of_script("passes", "true");
        assert!(matches!(outcome, Outcome::Passed(_)), "{outcome:?}");
    }

    #[test]
    fn suite_that_fails_after_reporting_a_skip_is_failed() {
        let script = "printf reason > \"$TARAN_SKIP_REPORT\"; exit 3";
        let outcome = outcome_of_script("fails", script);
        assert!(matches!(outcome, Outcome::Failed(..)), "{outcome:?}");
    }

    #[test]
    fn summary_with_skipped_suites_lists_them_at_the_end() {
        let took = Duration::from_secs(7);
        let skipped = || Outcome::Skipped("no rust-src".to_owned());
        let outcomes = [
            ("Miri", skipped()),
            ("soak", Outcome::Passed(took)),
            ("ThreadSanitizer", skipped()),
        ];
        let summary = summary(&outcomes);
        let lines: Vec<&str> = summary.lines().collect();
        assert_eq!(lines.len(), 4, "{summary}");
        assert!(lines[0].starts_with("Miri ") && lines[0].ends_with("SKIPPED: no rust-src"));
        assert!(lines[1].ends_with("passed in 7 s"));
        assert_eq!(lines[3], "SKIPPED, not tested: Miri, ThreadSanitizer");
    }

    #[test]
    fn summary_without_skipped_suites_lists_none() {
        let outcomes = [("soak", Outcome::Unaffected)];
        assert!(!summary(&outcomes).contains("SKIPPED"));
    }
}
