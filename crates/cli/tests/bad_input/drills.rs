// SPDX-License-Identifier: Apache-2.0
//! The troubles of `docs/troubleshooting.md`: each is caused, and the command of the document names its cause and its remedy.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::attach::{connect, own_socket_address, wait_until};
use crate::mounts::{in_own_mounts, mount_memory};
use crate::process::{Directory, Driver, Outcome, run, taran};
use crate::texts::assert_says;

/// Returns the arguments of the first command below the heading with this end.
#[track_caller]
fn command(heading: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/troubleshooting.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text
        .split("\n## ")
        .find(|section| section.lines().next().unwrap_or("").ends_with(heading));
    let section = section.unwrap_or_else(|| panic!("no heading ends with {heading:?}"));
    let line = section
        .lines()
        .find_map(|line| line.strip_prefix("    taran "));
    let line = line.unwrap_or_else(|| panic!("no command below {heading:?}"));
    line.split(' ').map(str::to_owned).collect()
}

/// Runs the command of a trouble on the driver in `directory`.
#[track_caller]
fn ask(heading: &str, directory: &Path) -> Outcome {
    let mut taran = taran(&[]);
    taran.args(command(heading)).env("AERON_DIR", directory);
    run(&mut taran)
}

#[test]
fn stuck_subscriber_is_named_with_its_client() {
    let directory = Directory::new("drill-stuck");
    let driver = Driver::start(directory.path(), &[]);
    let publisher = connect(directory.path());
    let subscriber = connect(directory.path());
    let channel = "aeron:ipc?term-length=64k";
    let subscription = subscriber.add_subscription(channel, 10).unwrap();
    let publication = publisher.add_publication(channel, 10).unwrap();
    let cause = format!(
        "limited by subscriber {} (client {} ",
        subscription.registration_id(),
        subscriber.client_id()
    );
    // The driver learns the name of a client after its first command.
    let process = format!("[{}]\")", std::process::id());
    wait_until("the verdict", || {
        while publication.offer(&[7; 1_000]).is_ok() {}
        let outcome = ask("a subscriber is stuck", directory.path());
        outcome.assert_code(0);
        outcome.stdout.contains(&cause) && outcome.stdout.contains(&process)
    });
    let outcome = ask("a subscriber is stuck", directory.path());
    assert_says(
        &outcome.stdout,
        &[
            &cause,
            &process,
            "bytes behind",
            "remedy: look at that process",
            "tether=false",
        ],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn killed_driver_is_named_with_its_process() {
    let directory = Directory::new("drill-killed");
    let driver = Driver::start(directory.path(), &[]);
    let pid = driver.pid();
    driver.stop("KILL");
    let outcome = ask("the driver was killed", directory.path());
    outcome
        .assert_code(1)
        .assert_stderr(&format!("(pid {pid}) has ended without shutting down"))
        .assert_stderr("it was killed or has crashed")
        .assert_stderr("Start it again with 'taran driver'");
}

#[test]
fn full_memory_is_named_with_the_size_that_suffices() {
    in_own_mounts(
        "drills::full_memory_is_named_with_the_size_that_suffices",
        || {
            mount_memory("/dev/shm", "size=64m");
            let directory = Path::new("/dev/shm/driver");
            let driver = Driver::start(directory, &[]);
            let refused = connect(directory).add_publication("aeron:ipc", 10);
            assert!(refused.is_err());
            let outcome = ask("/dev/shm is full", directory);
            outcome.assert_code(0);
            assert_says(
                &outcome.stdout,
                &[
                    "insufficient usable storage",
                    "needed=201330688",
                    "available=",
                    "--shm-size=240m",
                    "term-length",
                ],
            );
            driver.stop("TERM").assert_code(15).assert_silent();
        },
    );
}

#[test]
fn wrong_interface_is_named_with_those_that_exist() {
    let directory = Directory::new("drill-interface");
    let driver = Driver::start(directory.path(), &[]);
    let channel = "aeron:udp?endpoint=127.0.0.1:40123|interface={nosuch0}";
    let refused = connect(directory.path()).add_subscription(channel, 10);
    assert!(refused.is_err());
    let outcome = ask(
        "an interface that this machine does not have",
        directory.path(),
    );
    outcome.assert_code(0);
    assert_says(
        &outcome.stdout,
        &[channel, "unknown interface nosuch0", "lo 127.0.0.1/8"],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn port_in_use_is_named_with_the_search_for_its_program() {
    let directory = Directory::new("drill-port");
    let driver = Driver::start(directory.path(), &[]);
    let address = own_socket_address();
    let _holder = UdpSocket::bind(address).unwrap();
    let channel = format!("aeron:udp?endpoint={address}");
    let refused = connect(directory.path()).add_subscription(&channel, 10);
    assert!(refused.is_err());
    let outcome = ask("a port that is in use", directory.path());
    outcome.assert_code(0);
    let search = format!("ss -ulpn sport = :{}", address.port());
    assert_says(
        &outcome.stdout,
        &[&channel, "Address already in use", "another port", &search],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn second_driver_names_the_first_one() {
    let directory = Directory::new("drill-two");
    let driver = Driver::start(directory.path(), &[]);
    let outcome = ask("another one uses the directory", directory.path());
    outcome
        .assert_code(1)
        .assert_stderr("active media driver detected")
        .assert_stderr(&format!("(process {}, heartbeat ", driver.pid()))
        .assert_stderr("stop it, or choose another directory with aeron.dir");
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn mistake_in_option_names_value_source_and_what_is_allowed() {
    let directory = Directory::new("drill-option");
    let ask = |properties: &str| {
        directory.file("driver.properties", properties);
        let mut taran = taran(&[]);
        taran
            .args(command("a mistake in an option"))
            .current_dir(directory.path());
        run(&mut taran)
    };
    for (properties, says) in [
        (
            "aeron.mtu.length=70000",
            "aeron.mtu.length=70000 (file driver.properties) is out of range: needs a multiple of 32 in 64..65504",
        ),
        (
            "aeron.threading.mode=FAST",
            "needs one of DEDICATED, SHARED_NETWORK, SHARED, INVOKER",
        ),
        (
            "aeron.client.liveness.timeout=10",
            "has no unit, so it means 10 ns",
        ),
        (
            "aeron.term.buffer.length=100k",
            "needs a power of two in 64k..1g",
        ),
    ] {
        ask(properties).assert_code(1).assert_stderr(says);
    }
    // The official drivers ignore such names, so that it does not keep the driver from starting.
    let unknown = ask("aeron.mtu.lenght=1408");
    unknown
        .assert_code(0)
        .assert_stderr("did you mean aeron.mtu.length?");
}

/// Makes the keys of a driver. Returns their directory and the public key.
fn keys(directory: &Directory) -> (PathBuf, String) {
    let keys = directory.path().join("keys");
    run(in_keys(&mut taran(&["keys", "generate"]), &keys)).assert_code(0);
    let shown = run(in_keys(&mut taran(&["keys", "show"]), &keys));
    shown.assert_code(0);
    let key = shown.stdout.split_whitespace().next().unwrap().to_owned();
    (keys, key)
}

fn in_keys<'a>(command: &'a mut Command, keys: &Path) -> &'a mut Command {
    command.env("TARAN_SECURE_KEYS_DIR", keys)
}

#[test]
fn untrusted_key_is_named_with_the_command_that_trusts_it() {
    let (first, second) = (Directory::new("drill-key-a"), Directory::new("drill-key-b"));
    let (first_keys, _) = keys(&first);
    let (second_keys, second_key) = keys(&second);
    let trust = ["keys", "trust", "--yes", &second_key, "beta"];
    run(in_keys(&mut taran(&trust), &first_keys)).assert_code(0);
    let start = |directory: &Directory, keys: &Path| {
        let place = directory.path().join("driver");
        let defines = [
            format!("-Daeron.dir={}", place.display()),
            format!("-Dtaran.secure.keys.dir={}", keys.display()),
        ];
        let mut command = taran(&["driver", "-Dtaran.secure.mode=all", "-Dtaran.dir.mode=0700"]);
        (Driver::start_with(command.args(defines), &place), place)
    };
    let (publisher, from) = start(&first, &first_keys);
    let (subscriber, to) = start(&second, &second_keys);
    let channel = format!(
        "aeron:udp?endpoint={}|term-length=64k",
        own_socket_address()
    );
    let (receiving, sending) = (connect(&to), connect(&from));
    let _subscription = receiving.add_subscription(&channel, 10).unwrap();
    let _publication = sending.add_publication(&channel, 10).unwrap();

    let heading = "a key is not trusted";
    wait_until("the refusal", || {
        ask(heading, &to).stdout.contains("no key with fingerprint")
    });
    let fingerprint = run(in_keys(&mut taran(&["keys", "fingerprint"]), &first_keys));
    let trust = format!("taran keys --dir {} trust", second_keys.display());
    let outcome = ask(heading, &to);
    assert_says(
        &outcome.stdout,
        &[fingerprint.stdout.trim(), &channel, &trust],
    );
    publisher.stop("TERM").assert_code(15).assert_silent();
    subscriber.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn mistake_in_key_files_is_named_with_its_remedy() {
    let directory = Directory::new("drill-keys");
    let (keys, key) = keys(&directory);
    let ask = || {
        let mut taran = taran(&[]);
        taran.args(command("a mistake in the key files"));
        run(in_keys(&mut taran, &keys))
    };
    ask().assert_code(0);
    let identity = keys.join("identity.key");
    fs::set_permissions(&identity, fs::Permissions::from_mode(0o644)).unwrap();
    let says = format!(
        "{} is accessible to others (mode 0644), needs 0600: run 'chmod 600' on it",
        identity.display()
    );
    assert_says(&ask().assert_code(1).stdout, &[&says]);
    fs::set_permissions(&identity, fs::Permissions::from_mode(0o600)).unwrap();
    let trusted = keys.join("trusted");
    fs::write(&trusted, format!("{} beta\n", &key[..30])).unwrap();
    fs::set_permissions(&trusted, fs::Permissions::from_mode(0o600)).unwrap();
    assert_says(&ask().assert_code(1).stdout, &["trusted", "line 1"]);
}
