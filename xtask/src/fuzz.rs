//! `cargo xtask fuzz`: builds the fuzz targets with what a stable toolchain has, and runs them.
//!
//! The compiler's coverage pass is a pass like any other, and libFuzzer comes as source with `libfuzzer-sys` (it needs a
//! C++ compiler): neither a nightly toolchain nor cargo-fuzz is needed. With AddressSanitizer a nightly one is.

mod options;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sanitizers::has_nightly;
use crate::suites::is_sbe_target;
use crate::{at_least_one, run as run_command};

const HOST: &str = "x86_64-unknown-linux-gnu";

/// What makes a program tell libFuzzer where it has been.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "--cfg=fuzzing",
];
/// And what it compares. That finds words and magic numbers, and is a third of the time.
const COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";

const USAGE: &str = "cargo xtask fuzz [TARGET... | --except sbe] [--runs N] [--seconds S] [--seed N] [--fast] [--asan] [--minimise] [--story FILE]";

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    targets: Vec<String>,
    runs: Option<u64>,
    seconds: Option<u64>,
    /// Where chance starts from; without it, each run tries other inputs.
    seed: Option<u64>,
    /// Many inputs rather than well-guided ones.
    fast: bool,
    asan: bool,
    minimise: bool,
    /// All targets but those of `taran-sbe`.
    without_sbe: bool,
    /// Inputs of one driver, to be tried before anything else.
    story: Option<PathBuf>,
}

/// Runs the chore.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut asked = read(arguments)?;
    let known = targets()?;
    if asked.without_sbe {
        if !asked.targets.is_empty() {
            return Err(format!("--except goes without targets; usage: {USAGE}"));
        }
        asked.targets = known
            .iter()
            .filter(|name| !is_sbe_target(name))
            .cloned()
            .collect();
    }
    if asked.targets.is_empty() {
        asked.targets = known;
    } else if let Some(unknown) = asked.targets.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "no target {unknown}; there are {}",
            known.join(", ")
        ));
    }
    if asked.story.is_some() {
        let [target] = &asked.targets[..] else {
            return Err("--story needs the target whose story it is".to_owned());
        };
        if !options::is_stateful(target) {
            return Err(format!(
                "{target} has no stories: each input stands for itself"
            ));
        }
    }
    if asked.asan && !has_nightly("") {
        return Ok(());
    }
    let programs = build(&asked)?;
    if asked.minimise {
        seeds()?;
    }
    for target in &asked.targets {
        if asked.minimise {
            minimise(&programs, target)?;
        } else {
            fuzz(&programs, target, &asked)?;
        }
    }
    Ok(())
}

fn read(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut rest = arguments.iter();
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
            // None but what is kept.
            "--runs" => asked.runs = Some(number(value()?)?),
            "--seconds" => asked.seconds = Some(at_least_one(argument, value()?)?),
            "--seed" => asked.seed = Some(number(value()?)?),
            "--story" => asked.story = Some(PathBuf::from(value()?)),
            "--fast" => asked.fast = true,
            "--asan" => asked.asan = true,
            "--minimise" => asked.minimise = true,
            "--except" if value()? == "sbe" => asked.without_sbe = true,
            "--except" => return Err(format!("--except needs \"sbe\"; usage: {USAGE}")),
            option if option.starts_with('-') => {
                return Err(format!("{option} is unknown; usage: {USAGE}"));
            }
            target => asked.targets.push(target.to_owned()),
        }
    }
    Ok(asked)
}

/// The targets there are, by the names of their programs.
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

/// Builds the programs of the targets; the folder in which they are.
fn build(asked: &Asked) -> Result<PathBuf, String> {
    let folder = match (asked.asan, asked.fast) {
        (true, _) => "../target/fuzz-asan",
        (false, true) => "../target/fuzz-fast",
        (false, false) => "../target/fuzz",
    };
    let folder = root().join(folder);
    let mut flags = COVERAGE.to_vec();
    if !asked.fast {
        flags.push(COMPARES);
    }
    let mut command = Command::new("cargo");
    if asked.asan {
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
    for target in &asked.targets {
        command.args(["--bin", target]);
    }
    run_command(&mut command)?;
    Ok(folder.join(HOST).join("release"))
}

/// Replays the corpus, then tries new inputs. What is new in them goes to `fuzz/findings`, what fails to
/// `fuzz/artifacts`. With a seed, nothing but the corpus and the seed decides what is tried.
fn fuzz(programs: &Path, target: &str, asked: &Asked) -> Result<(), String> {
    let findings = match asked.seed {
        None => made("findings", target)?,
        Some(_) => emptied(&format!("{target}.seeded"))?,
    };
    let artifacts = made("artifacts", target)?;
    let corpus = made("corpus", target)?;
    let mut command = Command::new(programs.join(target));
    if let Some(story) = &asked.story {
        command.env("TARAN_FUZZ_STORY", story);
    }
    let present = artifacts.join("story.now");
    command
        .env("TARAN_FUZZ_STORY_FILE", &present)
        .args(options::limits(target))
        .args(options::course(target, asked))
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

/// Gives the story that failed a name that no later run writes to. Only some targets have one.
fn keep_story(present: &Path) {
    let names = (1..).map(|number| present.with_file_name(format!("story-{number}")));
    if let Some(kept) = names.into_iter().find(|name| !name.exists())
        && fs::rename(present, &kept).is_ok()
    {
        eprintln!("the story is in {}", kept.display());
    }
}

/// Puts the first inputs of all targets among the findings.
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

/// Replaces the corpus by the smallest part of it, of the seeds and of the findings that covers as much.
fn minimise(programs: &Path, target: &str) -> Result<(), String> {
    let (findings, corpus) = (made("findings", target)?, made("corpus", target)?);
    // The corpus stays what it is until there is another one.
    let small = emptied(&format!("{target}.small"))?;
    let mut command = Command::new(programs.join(target));
    command
        .args(options::limits(target))
        // The fewest inputs that reach all code that is reached, however often.
        .args(["-set_cover_merge=1", "-use_counters=0"])
        .args([&small, &corpus, &findings]);
    run_command(&mut command)?;
    let old = emptied(&format!("{target}.old"))?;
    for (from, to) in [(&corpus, &old), (&small, &corpus)] {
        fs::rename(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    fs::remove_dir_all(&old).map_err(|error| format!("{}: {error}", old.display()))
}

/// A folder among the findings, with nothing in it.
fn emptied(name: &str) -> Result<PathBuf, String> {
    let folder = made("findings", name)?;
    fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    made("findings", name)
}

fn made(kind: &str, target: &str) -> Result<PathBuf, String> {
    let folder = root().join(kind).join(target);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}
