//! `cargo xtask sbe-peers`: our SBE codecs beside those of others.

use std::path::Path;
use std::process::Command;

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
    super::run(
        Command::new("cargo")
            .args(["bench", "--bench", "codecs", "--"])
            .args(arguments)
            .current_dir(&peers),
    )
}
