//! Codecs of the official tool, made of the same schemas, exchange messages with ours.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "codecs/garage.rs"]
mod garage;
#[path = "codecs/quote.rs"]
mod quote;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use taran_sbe_codecs::{garage_v0, garage_v1, garage_v2};

const SCHEMAS: [&str; 4] = ["garage_v0", "garage_v1", "garage_v2", "ticks"];

/// What the official tool generated, compiled together with our program that uses it; `None` where there is no JDK or
/// Maven, unless that is a failure.
fn class_path() -> Option<&'static str> {
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
    let project = crate_root.join("../../../interop-sbe");
    let jars = ["sbe-tool.jar", "agrona.jar"].map(|name| project.join("target").join(name));
    if !jars.iter().all(|jar| jar.exists()) {
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "package"]);
        run(maven.current_dir(&project))?;
    }
    let jars = jars.map(|jar| jar.display().to_string());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("official");
    let (sources, classes) = (out.join("java"), out.join("classes"));
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&classes).map_err(|error| error.to_string())?;
    let mut tool = Command::new("java");
    tool.arg(format!("-Dsbe.output.dir={}", sources.display()))
        .args(["-Dsbe.target.language=Java", "-cp", &jars.join(":")])
        .arg("uk.co.real_logic.sbe.SbeTool")
        .args(SCHEMAS.map(|name| crate_root.join("schema").join(name).with_extension("xml")));
    run(&mut tool)?;
    let mut files = Vec::new();
    let garage = fs::read_to_string(project.join("versions/Garage.java"));
    let garage = garage.map_err(|error| error.to_string())?;
    for version in ["v0", "v1", "v2"] {
        let path = sources.join(format!("Garage_{version}.java"));
        fs::write(path, of_version(&garage, version)).map_err(|error| error.to_string())?;
    }
    java_files(&sources, &mut files);
    java_files(&project.join("java"), &mut files);
    let mut compiler = Command::new("javac");
    compiler
        .args(["-nowarn", "-cp", &jars[1], "-d"])
        .arg(&classes)
        .args(files);
    run(&mut compiler)?;
    Ok(format!("{}:{}", classes.display(), jars[1]))
}

/// A source without the lines that are for other versions.
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

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    Err(format!("{command:?} failed: {out}{err}"))
}

/// Runs our Java program, which uses the official codecs.
fn official(class_path: &str, verb: &str, what: &str, file: &Path) -> String {
    let mut program = Command::new("java");
    program
        .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"])
        .args([
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            "-cp",
            class_path,
        ])
        .args(["io.taran.interop.sbe.Main", verb, what])
        .arg(file);
    let output = run(&mut program).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.bin"))
}

/// What ours write, by the name of its schema.
fn ours(name: &str) -> Vec<u8> {
    match name {
        "garage_v0" => garage::bytes(garage::v0),
        "garage_v1" => garage::bytes(garage::v1),
        "garage_v2" => garage::bytes(garage::v2),
        _ => quote::bytes(),
    }
}

#[test]
fn the_same_message_is_the_same_bytes() {
    let Some(class_path) = class_path() else {
        return;
    };
    for name in SCHEMAS {
        let file = file(&format!("theirs-{name}"));
        official(class_path, "write", name, &file);
        let theirs = fs::read(file).unwrap();
        let mut ours = ours(name);
        if name == "ticks" {
            // The official codecs leave `numGroups` and `numVarDataFields` to whoever uses them.
            for (at, sent) in [(10, &[2, 1][..]), (84, &[0, 0, 0, 1])] {
                assert_eq!(&ours[at..at + sent.len()], sent);
                ours[at..at + sent.len()].fill(0);
            }
        }
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn each_version_of_the_official_codecs_reads_each_version_of_ours() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in &SCHEMAS[..3] {
        let file = file(&format!("ours-{writer}"));
        fs::write(&file, ours(writer)).unwrap();
        for reader in &SCHEMAS[..3] {
            let read = official(class_path, "read", reader, &file);
            let mut expected = vec![
                "serial=72623859790382856|",
                "worth=(mantissa=123456|)",
                "(day=30|cost=(mantissa=3000|)",
                "(since=2010|drivers=[(age=18|licence='A1'),(age=81|licence='')]|fines=[(amount=-40",
                "maker='Würth'|notes=4 bytes of raw data",
            ];
            expected.extend(match (*reader, *writer) {
                ("garage_v0", _) => &[][..],
                (_, "garage_v0") => &["doors=255|colour=-2147483648|", "slogan=''"],
                (_, "garage_v1") => &[
                    "doors=5|colour=16711680|",
                    "guarantee=Yes",
                    "slogan='Vorsprung'",
                ],
                _ => &[
                    "doors=3|colour=-2147483648|",
                    "guarantee=No",
                    "slogan='Läuft'",
                ],
            });
            if (*reader, *writer) == ("garage_v2", "garage_v2") {
                expected.push("nickname=Bug|second=Electric|seats=[1,2,3]");
            }
            for part in expected {
                assert!(
                    read.contains(part),
                    "{reader} reads {writer}: {part} in {read}"
                );
            }
        }
    }
    let file = file("ours-ticks");
    fs::write(&file, ours("ticks")).unwrap();
    let read = official(class_path, "read", "ticks", &file);
    for part in [
        "price=9223372036854775807|depth=[1.0,-2.0]|side=Unknown",
        "raw=3 bytes",
    ] {
        assert!(read.contains(part), "{part} in {read}");
    }
}

#[test]
fn each_version_of_ours_reads_each_version_of_the_official_codecs() {
    let Some(class_path) = class_path() else {
        return;
    };
    for writer in &SCHEMAS[..3] {
        let file = file(&format!("for-ours-{writer}"));
        official(class_path, "write", writer, &file);
        let bytes = fs::read(file).unwrap();
        let read = [
            garage_v0::Message::decode(&bytes).unwrap().to_string(),
            garage_v1::Message::decode(&bytes).unwrap().to_string(),
            garage_v2::Message::decode(&bytes).unwrap().to_string(),
        ];
        for (reader, read) in read.iter().enumerate() {
            let mut expected = vec![
                "serial: 72623859790382856, modelYear: 1998, available: Yes, fuel: Diesel",
                "worth: Money { mantissa: Some(123456), exponent: -2 }",
                "repairs { day: 30, cost: Money { mantissa: Some(3000), exponent: -2 }",
                "owners { since: 2010, drivers: [drivers { age: 18, licence: \"A1\" }",
                "maker: \"Würth\", notes: [0, 1, 2, 255]",
            ];
            expected.extend(match (reader, *writer) {
                (0, _) => &[][..],
                (_, "garage_v0") => &["doors: None, colour: None, backup: None", "slogan: None"],
                (_, "garage_v1") => &["doors: Some(5), colour: Some(16711680)", "\"Vorsprung\""],
                _ => &["doors: Some(3), colour: None", "slogan: Some(\"Läuft\")"],
            });
            if (reader, *writer) == (2, "garage_v1") {
                expected.push("nickname: None, second: None, seats: None");
            }
            for part in expected {
                assert!(
                    read.contains(part),
                    "{reader} reads {writer}: {part} in {read}"
                );
            }
        }
    }
}
