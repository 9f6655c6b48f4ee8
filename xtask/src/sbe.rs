//! `cargo xtask sbe-peers`: our SBE codecs beside those of others.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Lets the official tool make its Rust of the schema of `peers/sbe`, and runs the benchmarks there.
pub(crate) fn peers(arguments: &[String]) -> Result<(), String> {
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
    let started = SystemTime::now();
    let target = peers.join("target");
    super::run(
        Command::new("cargo")
            .args(["bench", "--bench", "codecs", "--"])
            .args(arguments)
            .env("CARGO_TARGET_DIR", &target)
            .current_dir(&peers),
    )?;
    table(&target.join("criterion"), started);
    Ok(())
}

/// What was measured, message by message.
fn table(results: &Path, started: SystemTime) {
    println!("\nnanoseconds, medians   ours  official     prost");
    for verb in ["encode", "decode"] {
        for message in ["order", "book", "report"] {
            let codecs = ["ours", "official", "prost"];
            let found = codecs.map(|codec| {
                let folder = results.join(format!("{verb}_{message}_{codec}"));
                median(&folder.join("new/estimates.json"), started)
            });
            if found.iter().all(Option::is_none) {
                continue;
            }
            let [ours, official, prost] =
                found.map(|time| time.map_or("-".to_owned(), |time| format!("{time:.1}")));
            println!("{verb} {message:<14} {ours:>6}  {official:>8}  {prost:>8}");
        }
    }
}

/// The median that a benchmark found, if it ran after that time.
fn median(path: &Path, started: SystemTime) -> Option<f64> {
    let written = fs::metadata(path).ok()?.modified().ok()?;
    if written < started {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let (_, median) = text.split_once("\"median\"")?;
    let (_, point) = median.split_once("\"point_estimate\":")?;
    point.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_found_where_criterion_leaves_them() {
        let path = std::env::temp_dir().join(format!("xtask-median-{}.json", std::process::id()));
        let text = r#"{"mean":{"point_estimate":1.5,"x":0},"median":{"confidence_interval":{"lower_bound":2.0},
            "point_estimate":2.25,"standard_error":0.1}}"#;
        fs::write(&path, text).expect("a temporary file");
        let start = SystemTime::UNIX_EPOCH;
        assert_eq!(median(&path, start), Some(2.25));
        let later = SystemTime::now() + std::time::Duration::from_secs(3600);
        assert_eq!(median(&path, later), None, "that is of another run");
        fs::remove_file(&path).expect("it was written");
    }
}
