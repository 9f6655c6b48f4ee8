// SPDX-License-Identifier: Apache-2.0
//! `taran config`: the meaning of options and the sources of their values.

use serde_json::Value;

use crate::process::{Directory, run, taran};

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let outcome = run(&mut taran(arguments));
    outcome.assert_code(0).assert_silent();
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

#[test]
fn explain_accepts_property_and_variable_names() {
    for name in ["aeron.mtu.length", "AERON_MTU_LENGTH"] {
        let outcome = run(taran(&["config", "explain", name]).env("AERON_MTU_LENGTH", "8k"));
        outcome.assert_code(0).assert_silent();
        for text in [
            "aeron.mtu.length\n",
            "  variable: AERON_MTU_LENGTH\n",
            "   read by: driver\n",
            "     needs: a multiple of 32 in 64..65504\n",
            "   default: 1408\n",
            "     value: 8k\n",
            "      from: environment\n",
        ] {
            assert!(outcome.stdout.contains(text), "no {text:?} in {outcome:?}");
        }
    }
    let explained = json(&[
        "config",
        "explain",
        "aeron.sender.idle.strategy",
        "-Dtaran.profile=low-latency",
        "--json",
    ]);
    assert_eq!(explained["value"], "noop");
    assert_eq!(explained["source"], "profile low-latency");
    assert_eq!(explained["default"], "backoff");
    let of_clients = json(&["config", "explain", "aeron.client.name", "--json"]);
    assert_eq!(of_clients["read_by"], "client");
    assert_eq!(of_clients["source"], Value::Null);
}

#[test]
fn explain_of_unknown_name_suggests_the_nearest() {
    run(&mut taran(&["config", "explain", "aeron.mtu.lenght"]))
        .assert_code(2)
        .assert_stderr("did you mean aeron.mtu.length?");
    run(&mut taran(&["config", "explain", "nothing"]))
        .assert_code(2)
        .assert_stderr("taran config print");
    run(&mut taran(&["config"])).assert_code(2);
}

#[test]
fn print_lists_values_with_their_sources() {
    let directory = Directory::new("config");
    let file = directory
        .file("a.properties", "aeron.max.resend=7\n")
        .display()
        .to_string();
    let outcome = run(taran(&[
        "config",
        "print",
        "--changed",
        "-Dtaran.profile=low-footprint",
        &file,
    ])
    .env("AERON_MTU_LENGTH", "8k"));
    outcome.assert_code(0).assert_silent();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    for line in [
        "taran.profile=low-footprint  (command line)",
        "aeron.mtu.length=8k  (environment)",
        &format!("aeron.max.resend=7  (file {file})"),
        "aeron.threading.mode=SHARED  (profile low-footprint)",
    ] {
        assert!(lines.contains(&line), "no {line} in {outcome:?}");
    }
    assert!(!outcome.stdout.contains("(default)"), "{outcome:?}");

    let all = json(&["config", "print", "--json"]);
    let all = all.as_array().unwrap();
    assert!(all.len() > 100, "{}", all.len());
    let timer = all
        .iter()
        .find(|line| line["option"] == "aeron.timer.interval")
        .unwrap();
    assert_eq!(timer["value"], "1s");
    assert_eq!(timer["source"], "default");
    assert_eq!(timer["variable"], "AERON_TIMER_INTERVAL");

    let client = run(taran(&["config", "print", "--client", "--changed"])
        .env("AERON_CLIENT_NAME", "me")
        .env("AERON_MTU_LENGTH", "8k"));
    client.assert_code(0).assert_silent();
    assert_eq!(client.stdout, "aeron.client.name=me  (environment)\n");
}

#[test]
fn print_of_invalid_options_fails() {
    run(&mut taran(&["config", "print", "-Daeron.max.resend=900"]))
        .assert_code(1)
        .assert_stderr("aeron.max.resend=900");
    let conflict = run(&mut taran(&[
        "config",
        "print",
        "-Daeron.client.liveness.timeout=20s",
    ]));
    conflict
        .assert_code(1)
        .assert_stderr("aeron.publication.unblock.timeout");
    assert!(conflict.stdout.contains("20s"), "{conflict:?}");
    run(&mut taran(&["config", "print", "-Dnothing"]))
        .assert_code(1)
        .assert_stderr("malformed define");
}

const MEMBERS: &str = "aeron.cluster.members=0,a:1,a:2,a:3,a:4,a:5";

#[test]
fn options_of_a_cluster_are_explained_and_printed() {
    let timeout = "aeron.cluster.leader.heartbeat.timeout";
    let explained = json(&["config", "explain", timeout, "--cluster", "--json"]);
    assert_eq!(
        explained["variable"],
        "AERON_CLUSTER_LEADER_HEARTBEAT_TIMEOUT"
    );
    assert_eq!(explained["read_by"], "consensus module");
    assert_eq!(explained["default"], "200ms");
    assert_eq!(explained["value"], "200ms");

    let print = |program, define| {
        let arguments = ["config", "print", program, "--changed", "-D", define];
        run(taran(&arguments).env("AERON_CLUSTER_ID", "7"))
    };
    let module = print("--cluster", MEMBERS);
    module.assert_code(0).assert_silent();
    assert_eq!(
        module.stdout,
        format!("aeron.cluster.id=7  (environment)\n{MEMBERS}  (command line)\n")
    );
    let container = print("--container", "aeron.cluster.service.name=orders");
    container.assert_code(0).assert_silent();
    assert_eq!(
        container.stdout,
        "aeron.cluster.id=7  (environment)\naeron.cluster.service.name=orders  (command line)\n"
    );
    // What the member would refuse.
    print("--cluster", "aeron.cluster.member.id=1")
        .assert_code(1)
        .assert_stderr("aeron.cluster.members is not set");
}

#[test]
fn bad_options_of_a_cluster_are_errors_and_unknown_ones_warnings() {
    for (define, text) in [
        (
            "aeron.cluster.session.timeout=1x",
            "aeron.cluster.session.timeout=1x (command line) is not understood: needs a duration",
        ),
        (
            "aeron.cluster.session.timeout=10",
            "aeron.cluster.session.timeout=10 (command line) has no unit",
        ),
        (
            "aeron.cluster.service.count=11",
            "aeron.cluster.service.count=11 (command line) is out of range: needs a number in 1..10",
        ),
        (
            "aeron.cluster.accept.standby.snapshots=true",
            "is not supported: there is no standby",
        ),
    ] {
        run(&mut taran(&["cluster", "-D", MEMBERS, "-D", define]))
            .assert_code(1)
            .assert_stderr(text);
    }
    let warned = |arguments: &[&str], text: &str| {
        let mut all = vec!["cluster"];
        all.extend(arguments);
        // Each run ends at an invalid configuration, after its warnings.
        run(&mut taran(&all)).assert_code(1).assert_stderr(text);
    };
    let misspelt = "-Daeron.cluster.max.session=3";
    warned(
        &[misspelt],
        "unknown option aeron.cluster.max.session (command line), did you mean aeron.cluster.max.sessions?",
    );
    let invalid = "-Daeron.cluster.control.channel=aeron:udp?endpoint=a:1";
    warned(&["--container", misspelt, invalid], "did you mean");
    warned(
        &["-Daeron.cluster.service.name=orders"],
        "aeron.cluster.service.name has no effect here: it is an option of a service container",
    );
    warned(
        &["--container", "-Daeron.cluster.max.sessions=3", invalid],
        "aeron.cluster.max.sessions has no effect here: it is an option of a consensus module",
    );
    let directory = Directory::new("foreign-options");
    let file = directory.file("member.properties", "taran.cluster.admins=ops\n");
    warned(
        &["--container", file.to_str().unwrap(), invalid],
        "taran.cluster.admins has no effect here: it is an option of a consensus module",
    );
}
