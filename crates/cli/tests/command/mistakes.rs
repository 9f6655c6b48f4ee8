// SPDX-License-Identifier: Apache-2.0
//! Mistakes of users: each is told, with the remedy, where it is made.

use std::path::Path;

use taran::Client;

use crate::own_address::own_address;
use crate::process::{Directory, Driver, run, taran};
use crate::traffic::PORT;

fn client(directory: &Path) -> Client {
    Client::builder()
        .aeron_dir(directory)
        .connect()
        .expect("the driver takes clients")
}

#[test]
fn driver_takes_its_directory_from_d_and_reports_unknown_defines() {
    let directory = Directory::new("mistakes");
    let path = directory.path().display().to_string();
    let mut command = taran(&["driver", "-d", &path, "-Dthreading.mode=SHARED", "-Dfoo=1"]);
    let driver = Driver::start_with(&mut command, directory.path());
    driver
        .stop("TERM")
        .assert_code(15)
        .assert_stderr(
            "WARNING: unknown option threading.mode (command line), did you mean aeron.threading.mode?",
        )
        .assert_stderr(
            "WARNING: unknown option foo (command line); 'taran config print' lists all options",
        );
}

#[test]
fn option_in_place_of_a_file_is_explained() {
    for (command, code) in [("driver", 1), ("archive", 1)] {
        run(&mut taran(&[command, "aeron.dir=/dev/shm/nowhere"]))
            .assert_code(code)
            .assert_stderr("write -Daeron.dir=/dev/shm/nowhere");
    }
}

#[test]
fn duration_without_unit_below_the_minimum_is_refused() {
    let text = "aeron.client.liveness.timeout=10 (command line) has no unit, so it means 10 ns, which is below the minimum: \
                needs a duration such as 100ms: digits with ns, us, ms or s";
    run(&mut taran(&[
        "config",
        "print",
        "-Daeron.client.liveness.timeout=10",
    ]))
    .assert_code(1)
    .assert_stderr(text);
    run(&mut taran(&["config", "print", "-Daeron.timer.interval=0"])).assert_code(0);
}

#[test]
fn mistakes_in_channels_are_told_when_they_are_added() {
    let directory = Directory::new("channels");
    let driver = Driver::start(directory.path(), &[]);
    let client = client(directory.path());
    let channel = format!("aeron:udp?endpoint={}:{PORT}", own_address());
    for (parameter, text) in [
        (
            "cc=fast",
            "unknown congestion control, must be static or cubic: cc=fast",
        ),
        ("rcv-wnd=32", "rcv-wnd=32 is less than the shortest mtu=64"),
        ("interface=eth9", "interface takes an address"),
    ] {
        let error = client
            .add_subscription(format!("{channel}|{parameter}"), 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "no {text:?} in {error}");
        if parameter.starts_with("interface") {
            assert!(error.contains("lo 127.0.0.1/8"), "{error}");
        }
    }
    let unread = client.add_publication(&channel, 2).unwrap();
    let error = unread.offer(b"in vain").unwrap_err().to_string();
    assert!(error.contains("'taran errors'"), "{error}");
    let misspelt = format!("{channel}|term_lenght=64k|customer=7");
    let _accepted = client.add_publication(&misspelt, 1).unwrap();
    let errors = run(taran(&["errors"]).env("AERON_DIR", directory.path()));
    errors.assert_code(0);
    let text = "unknown key term_lenght has no effect, did you mean term-length?: channel=";
    assert!(errors.stdout.contains(text), "{errors:?}");
    assert!(
        !errors.stdout.contains("unknown key customer"),
        "{errors:?}"
    );
    drop(client);
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn explain_finds_options_by_words_of_their_names() {
    let found = run(&mut taran(&["config", "explain", "mtu"]));
    found.assert_code(0).assert_silent();
    for option in ["aeron.mtu.length\n", "aeron.ipc.mtu.length\n"] {
        assert!(found.stdout.contains(option), "{found:?}");
    }
    let found = run(&mut taran(&["config", "explain", "ipc mtu", "--json"]));
    assert_eq!(found.assert_code(0).stdout.lines().count(), 1);
    assert!(found.stdout.contains("aeron.ipc.mtu.length"), "{found:?}");
}
