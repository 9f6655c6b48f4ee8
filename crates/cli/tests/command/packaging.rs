// SPDX-License-Identifier: Apache-2.0
//! The files in `packaging`: the command lines and properties in them, run with the real command.

use std::path::{Path, PathBuf};

use crate::process::{Directory, Driver, Process, run, taran};

/// Directory of the driver in images and packages.
const INSTALLED: &str = "/dev/shm/aeron-taran";

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(packaged(name)).expect("the file exists")
}

/// Returns the words of the list after `key` in the section of a YAML file that begins with `section`.
fn words(yaml: &str, section: &str, key: &str) -> Vec<String> {
    let mut lines = yaml.lines().skip_while(|line| line.trim() != section);
    let line = lines
        .find_map(|line| line.trim().strip_prefix(key))
        .expect("the key is in the section");
    let list = line
        .trim()
        .strip_prefix('[')
        .and_then(|line| line.strip_suffix(']'));
    list.expect("a list on one line")
        .split(',')
        .map(|word| word.trim().trim_matches('"').to_owned())
        .collect()
}

/// Returns the words with the directory of a test in the place of the installed one.
fn at(directory: &Directory, words: &[String]) -> Vec<String> {
    let path = directory.path().display().to_string();
    words
        .iter()
        .map(|word| word.replace(INSTALLED, &path))
        .collect()
}

fn command(words: &[String]) -> std::process::Command {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    taran(&words)
}

#[test]
fn properties_of_the_package_are_known_options() {
    for (file, program, property) in [
        ("etc/driver.properties", None, "taran.dir.mode"),
        (
            "etc/archive.properties",
            Some("--archive"),
            "aeron.archive.dir",
        ),
    ] {
        let path = packaged(file).display().to_string();
        let outcome = run(taran(&["config", "print", "--changed", &path]).args(program));
        // An unknown name would be a warning.
        outcome.assert_code(0).assert_silent();
        let line = outcome
            .stdout
            .lines()
            .find(|line| line.starts_with(property));
        let line = line.unwrap_or_else(|| panic!("no {property} in {outcome:?}"));
        assert!(line.contains("(file "), "{line}");
    }
}

#[test]
fn programs_of_the_compose_file_measure_round_trips() {
    let yaml = text_of("docker/compose.yaml");
    let directory = Directory::new("compose");
    let _driver = Driver::start(directory.path(), &[]);

    let server = at(&directory, &words(&yaml, "server:", "command:"));
    let _server = Process::start(&mut command(&server));
    let mut client = at(&directory, &words(&yaml, "client:", "command:"));
    let output = directory.path().join("echo.hgrm").display().to_string();
    for word in [
        "--duration",
        "200ms",
        "--warmup",
        "100ms",
        "--rate",
        "1k",
        "--output",
        &output,
    ] {
        client.push(word.to_owned());
    }
    let outcome = run(&mut command(&client));
    // A busy machine may not hold the rate; nothing may be lost.
    assert!(matches!(outcome.code, Some(0 | 4)), "{outcome:?}");
    let histogram = std::fs::read_to_string(&output).unwrap_or_default();
    assert!(
        histogram.contains("Percentile"),
        "{histogram:?} {outcome:?}"
    );
}

#[test]
fn driver_and_probe_of_the_sidecar_understand_each_other() {
    let yaml = text_of("kubernetes/sidecar.yaml");
    let directory = Directory::new("sidecar");
    let probe = at(&directory, &words(&yaml, "livenessProbe:", "command:"));
    assert_eq!(probe[0], "taran");
    run(&mut command(&probe[1..])).assert_code(1);

    let driver = at(&directory, &words(&yaml, "- name: driver", "args:"));
    let driver = Driver::start_with(&mut command(&driver), directory.path());
    run(&mut command(&probe[1..])).assert_code(0);
    drop(driver);
    run(&mut command(&probe[1..])).assert_code(1);
}

#[test]
fn units_start_commands_with_packaged_properties() {
    for (unit, command, properties) in [
        ("taran-driver", "driver", "etc/driver.properties"),
        ("taran-archive", "archive", "etc/archive.properties"),
    ] {
        let text = text_of(&format!("systemd/{unit}.service"));
        let start = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="))
            .expect("the unit starts a command");
        let name = Path::new(properties)
            .file_name()
            .expect("a name")
            .to_string_lossy();
        assert_eq!(start, format!("/usr/bin/taran {command} /etc/taran/{name}"));
        assert!(packaged(properties).exists());
    }
    // The exit status after SIGTERM, which the unit takes for success.
    let directory = Directory::new("unit");
    let driver = Driver::start(directory.path(), &[]);
    let outcome = driver.stop("TERM");
    let text = text_of("systemd/taran-driver.service");
    let successful = text
        .lines()
        .find_map(|line| line.strip_prefix("SuccessExitStatus="))
        .expect("the unit names them");
    let code = outcome.code.expect("an exit status").to_string();
    assert!(
        successful.split(' ').any(|status| status == code),
        "{outcome:?}"
    );
}
