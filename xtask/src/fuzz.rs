// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask fuzz`: builds and runs the fuzz targets with a stable toolchain.
//!
//! The coverage pass is available in the stable compiler, and `libfuzzer-sys` contains the source of libFuzzer (which needs a
//! C++ compiler). AddressSanitizer needs a nightly toolchain; cargo-fuzz is not needed.

mod options;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sanitizers::nightly;
use crate::{Completion, TaskResult, at_least_one, run as run_command};

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Compiler flags that report reached code to libFuzzer.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "--cfg=fuzzing",
];
/// Compiler flag that reports comparisons to libFuzzer. It finds keywords and magic numbers, and costs a third of the run time.
const COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";

const USAGE: &str = "cargo xtask fuzz [TARGET... | --area archive|cluster|fix|sbe|transport] [--runs N] [--seconds S] [--seed N] [--fast] [--asan] [--minimise] [--story FILE]";

/// Part of the project that a target tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Area {
    Archive,
    Cluster,
    Fix,
    Sbe,
    Transport,
}

impl Area {
    /// Targets of archive and archive client have names that start with `archive_`, those of the cluster with `cluster_`, those of `taran-fix` with `fix_`, those of
    /// `taran-sbe` with `sbe_`.
    fn of(target: &str) -> Area {
        if target.starts_with("archive_") {
            Area::Archive
        } else if target.starts_with("cluster_") {
            Area::Cluster
        } else if target.starts_with("fix_") {
            Area::Fix
        } else if target.starts_with("sbe_") {
            Area::Sbe
        } else {
            Area::Transport
        }
    }
}

/// Parsed arguments.
#[derive(Debug, Default)]
struct FuzzArguments {
    targets: Vec<String>,
    runs: Option<u64>,
    seconds: Option<u64>,
    /// Random seed; without it, each run tries other inputs.
    seed: Option<u64>,
    /// Less guidance in favour of more inputs per second.
    fast: bool,
    asan: bool,
    minimise: bool,
    /// All targets of one area.
    area: Option<Area>,
    /// File with the inputs of a failed run, replayed before anything else.
    story: Option<PathBuf>,
}

/// Runs the task.
pub(crate) fn run(arguments: &[String]) -> TaskResult {
    let mut arguments = read(arguments)?;
    let known = targets()?;
    if arguments.targets.is_empty() {
        let is_chosen = |name: &String| arguments.area.is_none_or(|area| Area::of(name) == area);
        arguments.targets = known.into_iter().filter(is_chosen).collect();
    } else if arguments.area.is_some() {
        return Err(format!(
            "--area and targets exclude each other; usage: {USAGE}"
        ));
    } else if let Some(unknown) = arguments.targets.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "no target {unknown}; known targets: {}",
            known.join(", ")
        ));
    }
    if arguments.story.is_some() {
        let [target] = &arguments.targets[..] else {
            return Err("--story needs the target that wrote the file".to_owned());
        };
        if !options::is_stateful(target) {
            return Err(format!(
                "{target} keeps no state between inputs and does not support --story"
            ));
        }
    }
    if arguments.asan
        && let Err(missing) = nightly("")
    {
        return Ok(Completion::Skipped(missing));
    }
    let programs = build(&arguments)?;
    if arguments.minimise {
        seeds()?;
    }
    for target in &arguments.targets {
        if arguments.minimise {
            minimise(&programs, target)?;
        } else {
            fuzz(&programs, target, &arguments)?;
        }
    }
    Ok(Completion::Ran)
}

fn read(words: &[String]) -> Result<FuzzArguments, String> {
    let mut arguments = FuzzArguments::default();
    let mut rest = words.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            let value = rest.next();
            value.ok_or_else(|| format!("{argument} needs a value; usage: {USAGE}"))
        };
        let number = |text: &String| {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("{argument} needs a number, not {text}; usage: {USAGE}"))
        };
        match argument.as_str() {
            // 0 replays the corpus only.
            "--runs" => arguments.runs = Some(number(value()?)?),
            "--seconds" => arguments.seconds = Some(at_least_one(argument, value()?)?),
            "--seed" => arguments.seed = Some(number(value()?)?),
            "--story" => arguments.story = Some(PathBuf::from(value()?)),
            "--fast" => arguments.fast = true,
            "--asan" => arguments.asan = true,
            "--minimise" => arguments.minimise = true,
            "--area" => {
                arguments.area = Some(match value()?.as_str() {
                    "archive" => Area::Archive,
                    "cluster" => Area::Cluster,
                    "fix" => Area::Fix,
                    "sbe" => Area::Sbe,
                    "transport" => Area::Transport,
                    other => {
                        return Err(format!(
                            "--area needs \"archive\", \"cluster\", \"fix\", \"sbe\" or \"transport\", not {other:?}; usage: {USAGE}"
                        ));
                    }
                });
            }
            option if option.starts_with('-') => {
                return Err(format!("{option} is unknown; usage: {USAGE}"));
            }
            target => arguments.targets.push(target.to_owned()),
        }
    }
    Ok(arguments)
}

/// Returns the names of all targets, which are those of their programs.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz_targets");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// Builds the programs of the targets and returns their folder.
fn build(arguments: &FuzzArguments) -> Result<PathBuf, String> {
    let folder = match (arguments.asan, arguments.fast) {
        (true, _) => "../target/fuzz-asan",
        (false, true) => "../target/fuzz-fast",
        (false, false) => "../target/fuzz",
    };
    let folder = root().join(folder);
    let mut flags = COVERAGE.to_vec();
    if !arguments.fast {
        flags.push(COMPARES);
    }
    let mut command = Command::new("cargo");
    if arguments.asan {
        flags.push("-Zsanitizer=address");
        command.arg("+nightly");
    }
    command
        .args(["build", "--release", "--locked", "--target", HOST])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", flags.join(" "));
    for target in &arguments.targets {
        command.args(["--bin", target]);
    }
    run_command(&mut command)?;
    Ok(folder.join(HOST).join("release"))
}

/// Replays the corpus, then tries new inputs. Inputs with new coverage go to `fuzz/findings`, failing inputs to
/// `fuzz/artifacts`. With a seed, only the corpus and the seed determine the inputs.
fn fuzz(programs: &Path, target: &str, arguments: &FuzzArguments) -> Result<(), String> {
    let findings = match arguments.seed {
        None => folder_of("findings", target)?,
        Some(_) => empty_folder(&format!("{target}.seeded"))?,
    };
    let artifacts = folder_of("artifacts", target)?;
    let corpus = folder_of("corpus", target)?;
    let mut command = Command::new(programs.join(target));
    if let Some(story) = &arguments.story {
        command.env("TARAN_FUZZ_STORY", story);
    }
    let present = artifacts.join("story.now");
    command
        .env("TARAN_FUZZ_STORY_FILE", &present)
        .args(options::limits(target))
        .args(options::run_options(target, arguments))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([findings, corpus]);
    let outcome = run_command(&mut command);
    if outcome.is_err() {
        keep_story(&present);
    } else {
        let _ = fs::remove_file(present);
    }
    outcome
}

/// Renames the recorded inputs of a failed run so that later runs do not overwrite them. Only stateful targets record them.
fn keep_story(present: &Path) {
    let names = (1..).map(|number| present.with_file_name(format!("story-{number}")));
    if let Some(kept) = names.into_iter().find(|name| !name.exists())
        && fs::rename(present, &kept).is_ok()
    {
        eprintln!("the inputs of the failed run are in {}", kept.display());
    }
}

/// Writes the initial inputs of all targets to the findings.
fn seeds() -> Result<(), String> {
    let folder = root();
    run_command(
        Command::new("cargo")
            .args([
                "run",
                "--quiet",
                "--locked",
                "--bin",
                "seeds",
                "--manifest-path",
            ])
            .arg(folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(folder.join("../target/fuzz-seeds"))
            .arg(folder.join("findings")),
    )
}

/// Replaces the corpus with the smallest subset of corpus, seeds and findings that has the same coverage.
fn minimise(programs: &Path, target: &str) -> Result<(), String> {
    let (findings, corpus) = (folder_of("findings", target)?, folder_of("corpus", target)?);
    // The old corpus is replaced only after the new one is complete.
    let small = empty_folder(&format!("{target}.small"))?;
    let mut command = Command::new(programs.join(target));
    command
        .args(options::limits(target))
        // Minimises by reached code, regardless of how often it is reached.
        .args(["-set_cover_merge=1", "-use_counters=0"])
        .args([&small, &corpus, &findings]);
    run_command(&mut command)?;
    let old = empty_folder(&format!("{target}.old"))?;
    for (from, to) in [(&corpus, &old), (&small, &corpus)] {
        fs::rename(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    fs::remove_dir_all(&old).map_err(|error| format!("{}: {error}", old.display()))
}

/// Returns an empty folder below the findings.
fn empty_folder(name: &str) -> Result<PathBuf, String> {
    let folder = folder_of("findings", name)?;
    fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    folder_of("findings", name)
}

fn folder_of(kind: &str, target: &str) -> Result<PathBuf, String> {
    let folder = root().join(kind).join(target);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_include_all_areas() {
        let targets = targets().expect("the folder is there");
        for area in [
            Area::Archive,
            Area::Cluster,
            Area::Fix,
            Area::Sbe,
            Area::Transport,
        ] {
            let of_area = targets.iter().filter(|name| Area::of(name) == area);
            assert!(of_area.count() >= 3, "{area:?}: {targets:?}");
        }
    }
}
