// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask sbe-peers`: measures our SBE codecs against other codecs.

mod figures;

use std::path::{Path, PathBuf};
use std::process::Command;

use figures::{Cost, Figures};

const USAGE: &str = "cargo xtask sbe-peers [--criterion [BENCHMARK]]";

/// Operation, message, and which of our codecs; the report has two decoders.
const ROWS: [(&str, &str, &str); 7] = [
    ("encode", "order", "ours"),
    ("encode", "book", "ours"),
    ("encode", "report", "ours"),
    ("decode", "order", "ours"),
    ("decode", "book", "ours"),
    ("decode", "report", "ours"),
    ("decode", "report", ITERATED),
];
/// Our decoder by iterators. For entries with groups or data of their own, an iterator has to find the end of each entry first,
/// so it is slower by design; its cost is reported and not checked.
const ITERATED: &str = "iterated";
/// The other codecs.
const OTHERS: [&str; 2] = ["official", "prost"];
/// Number of rounds; the codecs alternate, so that other load on the machine affects all of them.
const ROUNDS: usize = 9;

/// Generates the official Rust codec for the schema of `peers/sbe`, measures all codecs, and fails if ours is slower. With
/// `--criterion`, runs the benchmarks there instead, which check nothing.
pub(crate) fn peers(arguments: &[String]) -> Result<(), String> {
    let benchmarks = match arguments {
        [] => None,
        [flag, rest @ ..] if flag == "--criterion" && rest.len() <= 1 => Some(rest),
        _ => return Err(format!("usage: {USAGE}")),
    };
    let peers = prepare()?;
    if let Some(only) = benchmarks {
        return super::run(
            Command::new("cargo")
                .args(["bench", "--bench", "codecs", "--"])
                .args(only)
                .current_dir(&peers),
        );
    }
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "--bin", "repeat"]);
    super::run(build.current_dir(&peers))?;
    let figures = measure(&peers.join("target/release/repeat"))?;
    println!("{figures}");
    figures.check()
}

/// Generates the official Rust codec, and runs the tests that all codecs agree. Returns the folder `peers/sbe`.
fn prepare() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let project = root.join("interop-sbe");
    super::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(&project),
    )?;
    let jars = ["sbe-tool.jar", "agrona.jar"].map(|name| project.join("target").join(name));
    let class_path = std::env::join_paths(jars).map_err(|error| error.to_string())?;
    let peers = root.join("peers/sbe");
    super::run(
        Command::new("java")
            .args([
                "-Dsbe.output.dir=official",
                "-Dsbe.target.language=Rust",
                "-cp",
            ])
            .arg(class_path)
            .args(["uk.co.real_logic.sbe.SbeTool", "schema/bench.xml"])
            .current_dir(&peers),
    )?;
    super::run(
        Command::new("cargo")
            .args(["test", "--quiet"])
            .current_dir(&peers),
    )?;
    Ok(peers)
}

/// Measures the cost of each codec for each row.
fn measure(program: &Path) -> Result<Figures, String> {
    let counts = Command::new("valgrind").arg("--version").output().is_ok();
    if !counts {
        println!("no valgrind: instructions are not counted");
    }
    let mut figures = Figures::default();
    for (verb, message, ours) in ROWS {
        let codecs = [ours, OTHERS[0], OTHERS[1]];
        let mut costs = [Cost::default(); 3];
        for (cost, codec) in costs.iter_mut().zip(codecs) {
            if counts {
                cost.instructions = Some(instructions(program, verb, message, codec)?);
            }
        }
        for _ in 0..ROUNDS {
            for (cost, codec) in costs.iter_mut().zip(codecs) {
                let took = nanoseconds(program, verb, message, codec)?;
                cost.nanoseconds = cost.nanoseconds.min(took);
            }
        }
        if ours == ITERATED {
            figures.add_unchecked(format!("{verb} {message}, {ours}"), costs);
        } else {
            figures.add_checked(format!("{verb} {message}"), costs);
        }
    }
    Ok(figures)
}

/// Returns the number of iterations of a time measurement, which take about a fifth of a second.
fn times(codec: &str) -> u64 {
    if codec == "prost" {
        400_000
    } else {
        20_000_000
    }
}

/// Returns the instructions of one iteration: the difference between a long and a short run, divided by the difference of their
/// iterations.
fn instructions(program: &Path, verb: &str, message: &str, codec: &str) -> Result<f64, String> {
    let (few, many) = (1_000, 11_000);
    let run = |times: u64| {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args([verb, &format!("{message}/{codec}"), &times.to_string()]);
        let text = output(&mut valgrind)?;
        let (_, count) = text
            .split_once("Collected : ")
            .ok_or_else(|| format!("callgrind printed no count: {text}"))?;
        let count = count.split_whitespace().next().unwrap_or_default();
        count
            .parse::<u64>()
            .map_err(|error| format!("callgrind printed the count {count:?}: {error}"))
    };
    let more = run(many)?.saturating_sub(run(few)?);
    Ok(more as f64 / (many - few) as f64)
}

/// Returns the CPU time of one iteration.
fn nanoseconds(program: &Path, verb: &str, message: &str, codec: &str) -> Result<f64, String> {
    let times = times(codec);
    let mut repeat = Command::new(program);
    repeat.args([verb, &format!("{message}/{codec}"), &times.to_string()]);
    let text = output(&mut repeat)?;
    let total = text.trim().parse::<u64>();
    let total = total.map_err(|error| format!("{repeat:?} printed {text:?}: {error}"))?;
    Ok(total as f64 / times as f64)
}

/// Runs a program and returns its standard output and standard error.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{command:?} ended with {}: {text}", output.status))
}
