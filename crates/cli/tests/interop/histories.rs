// SPDX-License-Identifier: Apache-2.0
//! The official archive client on `taran archive`: requests that change recordings, with the same outcome as on the official
//! archive; challenges and authorisation.

use std::path::Path;

use taran_archive::security::{Authenticator, AuthorisationService, SessionProxy};
use taran_archive::{Archive, ArchiveConfig};
use taran_protocol::option::{OptionSet, Source};

use crate::archive_client::fixture::TestArchive;
use crate::archives::TaranArchive;
use crate::drivers::Driver;
use crate::exchange::port;
use crate::java::{self, argument, directory};
use crate::require_java;

fn arguments(aeron_dir: &Path, control: &str) -> Vec<String> {
    vec![
        argument("dir", aeron_dir.display()),
        argument("control", control),
        argument("response", "aeron:udp?endpoint=127.0.0.1:0"),
        argument(
            "answers",
            format!(
                "aeron:udp?control-mode=response|control=127.0.0.1:{}",
                port()
            ),
        ),
        argument("timeout", 240),
    ]
}

#[test]
fn java_client_changes_recordings_like_those_of_the_official_archive() {
    require_java!();
    let official = TestArchive::with_driver("history-official");
    let control = official.control_channel();
    let expected = java::start("history", &arguments(official.aeron_dir(), &control)).finish();
    assert_eq!(expected.last().map(String::as_str), Some("DONE"));

    let driver = Driver::taran("history-driver", &[]);
    // One of the bad requests asks for a replay over a response channel that the client did not request.
    driver.expect_error("did not request a response channel");
    let properties = [
        ("aeron.archive.threading.mode", "INVOKER"),
        ("aeron.archive.segment.file.length", "64k"),
    ];
    let archive = TaranArchive::start("history", &driver, &properties);
    drop(crate::exchange::connect(driver.dir()));
    let control = archive.control_channel().to_owned();
    let said = java::start("history", &arguments(driver.dir(), &control)).finish();
    assert_eq!(said, expected);
    std::fs::remove_dir_all(archive.end()).unwrap();
}

/// Challenges clients whose credentials are "me" with "abc", and expects its reverse; rejects others.
#[derive(Default)]
struct Challenging {
    is_known: bool,
    has_answered: Option<bool>,
}

impl Authenticator for Challenging {
    fn on_connect_request(&mut self, _: i64, credentials: &[u8], _: i64) {
        self.is_known = credentials == b"me";
        self.has_answered = None;
    }

    fn on_challenge_response(&mut self, _: i64, credentials: &[u8], _: i64) {
        self.has_answered = Some(credentials == b"cba");
    }

    fn on_connected_session(&mut self, session: &mut SessionProxy, _: i64) {
        if self.is_known {
            session.challenge("abc");
        } else {
            session.reject();
        }
    }

    fn on_challenged_session(&mut self, session: &mut SessionProxy, _: i64) {
        match self.has_answered {
            Some(true) => session.authenticate("me"),
            Some(false) => session.reject(),
            None => {}
        }
    }
}

/// Permits all but to start a recording.
struct ReadOnly;

impl AuthorisationService for ReadOnly {
    fn is_authorised(&self, _: i32, action_id: i32, principal: &[u8]) -> bool {
        principal == b"me" && ![4, 63].contains(&action_id)
    }
}

#[test]
fn java_client_is_challenged_and_authorised() {
    require_java!();
    let driver = Driver::taran("challenge-driver", &[]);
    let dir = directory("challenge");
    let control = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    let mut options = OptionSet::archive();
    let properties = [
        ("aeron.dir", driver.dir().display().to_string()),
        ("aeron.archive.dir", dir.display().to_string()),
        ("aeron.archive.control.channel", control.clone()),
        (
            "aeron.archive.replication.channel",
            "aeron:udp?endpoint=127.0.0.1:0".to_owned(),
        ),
        ("aeron.archive.segment.file.length", "64k".to_owned()),
        ("aeron.archive.threading.mode", "SHARED".to_owned()),
    ];
    options.apply(&Source::CommandLine, properties).unwrap();
    let archive = Archive::builder(ArchiveConfig::new(&options).unwrap())
        .authenticator(Challenging::default())
        .authorisation(ReadOnly)
        .launch()
        .unwrap();
    for (credentials, answer, expected) in [
        (
            "me",
            "cba",
            &["CHALLENGED abc", "CONNECTED", "REFUSED start code=13"][..],
        ),
        ("me", "abc", &["CHALLENGED abc", "REFUSED connect code=10"]),
        ("other", "cba", &["REFUSED connect code=10"]),
    ] {
        let mut arguments = arguments(driver.dir(), &control);
        arguments.push(argument("credentials", credentials));
        arguments.push(argument("answer", answer));
        let said = java::start("authenticate", &arguments).finish();
        let matches = said.len() == expected.len()
            && said
                .iter()
                .zip(expected)
                .all(|(line, start)| line.starts_with(start));
        assert!(matches, "{credentials} {answer}: {said:#?}");
    }
    archive.close();
    std::fs::remove_dir_all(dir).unwrap();
}
