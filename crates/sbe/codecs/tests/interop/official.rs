// SPDX-License-Identifier: Apache-2.0
//! Runs the official tool, and a Java program that uses the code it generates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Schemas to generate official codecs for.
const SCHEMAS: [&str; 9] = [
    "garage_v0",
    "garage_v1",
    "garage_v2",
    "music_v0",
    "music_v1",
    "ticks_v5",
    "ticks_v6",
    "weather_v0",
    "weather_v1",
];

/// Returns the class path of the official codecs and our Java program; `None` without a JDK or Maven, unless these are
/// required.
pub(crate) fn class_path() -> Option<&'static str> {
    static CLASS_PATH: OnceLock<Result<String, String>> = OnceLock::new();
    match CLASS_PATH.get_or_init(build) {
        Ok(class_path) => Some(class_path),
        Err(reason) => {
            assert!(
                std::env::var_os("TARAN_REQUIRE_INTEROP").is_none_or(|value| value != "1"),
                "interop tests are required, but {reason}"
            );
            eprintln!("SKIPPED: no interop with the official tool: {reason}");
            None
        }
    }
}

fn build() -> Result<String, String> {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = project();
    let jars = jars();
    if !jars.iter().all(|jar| jar.exists()) {
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "package"]);
        let output = maven.current_dir(&project).output();
        if !output.is_ok_and(|output| output.status.success()) {
            return Err(format!("{maven:?} does not get it"));
        }
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("official");
    let (sources, classes) = (out.join("java"), out.join("classes"));
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&classes).map_err(|error| error.to_string())?;
    let schemas = SCHEMAS.map(|name| crate_root.join("schema").join(name).with_extension("xml"));
    generate(&sources, &schemas)?;
    let mut files = Vec::new();
    for (program, versions) in [
        ("Garage", &["v0", "v1", "v2"][..]),
        ("Album", &["v0", "v1", "v2"]),
        ("Music", &["v0", "v1"]),
        ("Weather", &["v0", "v1"]),
        ("Quote", &["v5", "v6"]),
        ("Book", &["v5", "v6"]),
    ] {
        let source = project.join("versions").join(program);
        let source = fs::read_to_string(source.with_extension("java"));
        let source = source.map_err(|error| error.to_string())?;
        for version in versions {
            let path = sources.join(format!("{program}_{version}.java"));
            fs::write(path, of_version(&source, version)).map_err(|error| error.to_string())?;
        }
    }
    java_files(&sources, &mut files);
    java_files(&project.join("java"), &mut files);
    let mut compiler = Command::new("javac");
    compiler
        .args(["-nowarn", "-cp"])
        .arg(&jars[1])
        .arg("-d")
        .arg(&classes)
        .args(files);
    run(&mut compiler)?;
    Ok(format!("{}:{}", classes.display(), jars[1].display()))
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../interop-sbe")
}

/// Returns the official tool, and the library that its codecs need.
fn jars() -> [PathBuf; 2] {
    ["sbe-tool.jar", "agrona.jar"].map(|name| project().join("target").join(name))
}

/// Generates official codecs in Java for these schemas, once [`class_path`] has fetched the tool.
pub(crate) fn generate(sources: &Path, schemas: &[PathBuf]) -> Result<(), String> {
    let jars = jars().map(|jar| jar.display().to_string());
    let mut tool = Command::new("java");
    tool.arg(format!("-Dsbe.output.dir={}", sources.display()))
        .args(["-Dsbe.target.language=Java", "-Dsbe.xinclude.aware=true"])
        .arg("-Dsbe.types.package.override=true")
        .args(["-cp", &jars.join(":")])
        .arg("uk.co.real_logic.sbe.SbeTool")
        .args(schemas);
    run(&mut tool).map(drop)
}

/// Returns a source without the lines for other versions.
fn of_version(source: &str, version: &str) -> String {
    let is_for = |line: &&str| match line.rsplit_once(" // v") {
        Some((_, versions)) => format!("v{versions}")
            .split(' ')
            .any(|each| each == version),
        None => true,
    };
    let lines: Vec<_> = source.lines().filter(is_for).collect();
    lines.join("\n").replace("VERSION", version)
}

fn java_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            java_files(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "java")
        {
            files.push(path);
        }
    }
}

/// Runs a program. A missing program is an error for the caller to handle; a failing one panics.
fn run(command: &mut Command) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{command:?} failed: {out}{err}");
    Ok(output)
}

/// Runs the Java program to `write` a file or `read` it with the official codecs.
pub(crate) fn codecs(class_path: &str, verb: &str, what: &str, file: &Path) -> String {
    program(class_path, &[verb, what, &file.display().to_string()])
}

/// Returns the schema metadata in the official codecs.
pub(crate) fn metadata(class_path: &str) -> String {
    program(class_path, &["metadata"])
}

fn program(class_path: &str, arguments: &[&str]) -> String {
    let mut program = Command::new("java");
    program
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args(["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"])
        .args(["-cp", class_path, "io.taran.interop.sbe.Main"])
        .args(arguments);
    let output = run(&mut program).unwrap();
    String::from_utf8(output.stdout).unwrap()
}
