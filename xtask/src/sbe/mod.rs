//! `cargo xtask sbe-peers`: our SBE codecs beside those of others.

mod figures;

use std::path::{Path, PathBuf};
use std::process::Command;

use figures::{Cost, Figures};

const USAGE: &str = "cargo xtask sbe-peers [--criterion [BENCHMARK]]";

/// What is measured of which message, and by which of our codecs: of the report there are two that read it.
const ROWS: [(&str, &str, &str); 7] = [
    ("encode", "order", "ours"),
    ("encode", "book", "ours"),
    ("encode", "report", "ours"),
    ("decode", "order", "ours"),
    ("decode", "book", "ours"),
    ("decode", "report", "ours"),
    ("decode", "report", ITERATED),
];
/// The way to read entries that have groups or data themselves by an iterator, which has to find the end of each first. Nobody
/// who is in a hurry takes it, so it is told and not judged.
const ITERATED: &str = "iterated";
/// The other codecs.
const OTHERS: [&str; 2] = ["official", "prost"];
/// How many times each is measured, in turns, so that whatever else the machine does falls upon all of them.
const ROUNDS: usize = 9;

/// Lets the official tool make its Rust of the schema of `peers/sbe`, and measures both: an error where ours is slower. Or
/// runs the benchmarks there, which judge nothing.
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
    figures.verdict()
}

/// The official tool's Rust, and that all codecs say the same with it.
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

/// What each codec costs, for each message.
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
            figures.tell(format!("{verb} {message}, {ours}"), costs);
        } else {
            figures.judge(format!("{verb} {message}"), costs);
        }
    }
    Ok(figures)
}

/// How many times a codec does what it is measured by: about a fifth of a second.
fn times(codec: &str) -> u64 {
    if codec == "prost" {
        400_000
    } else {
        20_000_000
    }
}

/// How many instructions one turn takes: what many turns take more than few.
fn instructions(program: &Path, verb: &str, message: &str, codec: &str) -> Result<f64, String> {
    let (few, many) = (1_000, 11_000);
    let run = |times: u64| {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args([verb, &format!("{message}/{codec}"), &times.to_string()]);
        let told = output(&mut valgrind)?;
        let (_, count) = told
            .split_once("Collected : ")
            .ok_or_else(|| format!("callgrind says nothing of what it counted: {told}"))?;
        let count = count.split_whitespace().next().unwrap_or_default();
        count
            .parse::<u64>()
            .map_err(|error| format!("callgrind counted {count}: {error}"))
    };
    let more = run(many)?.saturating_sub(run(few)?);
    Ok(more as f64 / (many - few) as f64)
}

/// How long one turn takes, by the time that the program was on a processor.
fn nanoseconds(program: &Path, verb: &str, message: &str, codec: &str) -> Result<f64, String> {
    let times = times(codec);
    let mut repeat = Command::new(program);
    repeat.args([verb, &format!("{message}/{codec}"), &times.to_string()]);
    let told = output(&mut repeat)?;
    let total = told.trim().parse::<u64>();
    let total = total.map_err(|error| format!("{repeat:?} says {told}: {error}"))?;
    Ok(total as f64 / times as f64)
}

/// All that a program says.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    if output.status.success() {
        return Ok(told);
    }
    Err(format!("{command:?} ended with {}: {told}", output.status))
}
