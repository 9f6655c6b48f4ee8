// SPDX-License-Identifier: Apache-2.0
//! Parameters that conflict with those of an existing resource. The error text contains both values and the remedy.

use taran::ErrorCode;

use crate::attach::{connect, own_socket_address};
use crate::process::{Directory, Driver};
use crate::texts::assert_rejected;

const POSITION: &str = "init-term-id=5|term-id=7|term-offset=64";

/// Conflicts with a publication with `term-length=64k|mtu=2048|session-id=7` and the position above.
const MISMATCHES: [(&str, [&str; 3]); 8] = [
    (
        "term-length=128k",
        ["term-length", "existing=65536", "requested=131072"],
    ),
    ("mtu=4096", ["mtu", "existing=2048", "requested=4096"]),
    ("mtu=1408", ["mtu", "existing=2048", "requested=1408"]),
    ("session-id=8", ["session-id", "existing=7", "requested=8"]),
    (
        "init-term-id=6|term-id=7|term-offset=64",
        ["init-term-id", "existing=5", "requested=6"],
    ),
    (
        "init-term-id=5|term-id=8|term-offset=64",
        ["term-id", "existing=7", "requested=8"],
    ),
    (
        "init-term-id=5|term-id=7|term-offset=0",
        ["term-offset", "existing=64", "requested=0"],
    ),
    (
        "init-term-id=5|term-id=7|term-offset=96|mtu=2048",
        ["term-offset", "existing=64", "requested=96"],
    ),
];

#[test]
fn conflicting_publication_parameters_are_rejected() {
    let directory = Directory::new("mismatch");
    let driver = Driver::start(directory.path(), &[]);
    let (client, other) = (connect(directory.path()), connect(directory.path()));
    for base in [
        "aeron:ipc?".to_owned(),
        format!("aeron:udp?endpoint={}|", own_socket_address()),
    ] {
        let first = format!("{base}term-length=64k|mtu=2048|session-id=7|{POSITION}");
        let publication = client.add_publication(&first, 10).unwrap();
        for (asked, says) in MISMATCHES {
            let channel = format!("{base}{asked}");
            let says = [&says[..], &[&channel, "leave it out", "another stream"]].concat();
            for client in [&client, &other] {
                let added = client.add_publication(&channel, 10);
                assert_rejected(added, ErrorCode::GenericError, &says);
            }
        }
        // A client that follows the advice shares the stream.
        let plain = base.trim_end_matches(['?', '|']);
        let shared = other.add_publication(plain, 10).unwrap();
        assert_eq!(shared.session_id(), publication.session_id());
        other
            .add_publication(format!("{base}mtu=4096"), 11)
            .unwrap();
        other
            .add_exclusive_publication(format!("{base}mtu=4096"), 10)
            .unwrap();
        // A session id can be used by one exclusive publication only.
        assert_rejected(
            other.add_exclusive_publication(format!("{base}session-id=7"), 10),
            ErrorCode::GenericError,
            &[
                "session-id=7",
                "already in exclusive use",
                "stream-id=10",
                "or omit it",
            ],
        );
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn conflicting_endpoint_parameters_are_rejected() {
    let directory = Directory::new("mismatch-endpoint");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let base = format!("aeron:udp?endpoint={}", own_socket_address());
    let _subscription = client.add_subscription(&base, 10).unwrap();
    let _publication = client.add_publication(&base, 10).unwrap();
    let unreliable = format!("{base}|reliable=false");
    assert_rejected(
        client.add_subscription(&unreliable, 10),
        ErrorCode::GenericError,
        &[
            "option conflicts with existing subscription",
            "reliable",
            &unreliable,
            &base,
        ],
    );
    let larger = format!("{base}|so-rcvbuf=256k");
    assert_rejected(
        client.add_subscription(&larger, 11),
        ErrorCode::GenericError,
        &[
            "so-rcvbuf=262144",
            "does not match existing value",
            &larger,
            &base,
        ],
    );
    let smaller = format!("{base}|so-sndbuf=64k");
    assert_rejected(
        client.add_publication(&smaller, 11),
        ErrorCode::GenericError,
        &[
            "so-sndbuf=65536",
            "does not match existing value",
            &smaller,
            &base,
        ],
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}
