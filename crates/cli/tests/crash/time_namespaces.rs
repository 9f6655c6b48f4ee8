// SPDX-License-Identifier: Apache-2.0
//! Drivers and clients with unrelated monotonic clocks: time namespaces, as for containers migrated from another
//! machine. Timestamps exchanged between processes are epoch times, which time namespaces do not change; durations are
//! measured with the clock of each process.

use std::fs;
use std::process::Command;

use taran::{Client, Publication, Subscription};
use taran_protocol::counter::SystemCounter;

use crate::fixture::{OPTIONS, PORT, await_true, builder, exchange_messages};
use crate::message::Received;
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::own_namespaces::{Flags, skip_or_fail};
use crate::process::{Directory, Driver, taran};
use crate::publisher_process::PublisherProcess;

const STREAM: i32 = 79;
const MESSAGES: u64 = 500;

/// With the value `1`, a test fails if time namespaces are not available.
const REQUIRED: &str = "TARAN_REQUIRE_TIME_NAMESPACES";

/// `unshare` flags for a time namespace, as root or as root of a user namespace.
#[derive(Clone, Copy)]
struct TimeNamespace {
    flags: Flags,
}

impl TimeNamespace {
    /// Returns `None`, with a message, if time namespaces are not available.
    fn find(test: &str) -> Option<TimeNamespace> {
        let candidates: [Flags; 2] = [&["-T"], &["-r", "-T"]];
        let works = |flags: &Flags| {
            let mut unshare = Command::new("unshare");
            let output = unshare.args(*flags).args(offset(1)).arg("true").output();
            output.is_ok_and(|output| output.status.success())
        };
        let found = candidates.into_iter().find(works);
        if found.is_none() {
            skip_or_fail(
                REQUIRED,
                test,
                "time namespaces cannot be made here (unshare -T)",
            );
        }
        found.map(|flags| TimeNamespace { flags })
    }

    /// Returns the same command with monotonic clocks shifted by `seconds`.
    fn begin(self, seconds: i64, program: &Command) -> Command {
        let mut command = Command::new("unshare");
        command.args(self.flags).args(offset(seconds));
        command.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn driver(self, seconds: i64, directory: &Directory) -> Driver {
        let mut driver = taran(&["driver"]);
        driver.env("AERON_DIR", directory.path());
        driver.args(OPTIONS.map(|option| format!("-D{option}")));
        Driver::start_with(&mut self.begin(seconds, &driver), directory.path())
    }
}

fn offset(seconds: i64) -> [String; 4] {
    let seconds = seconds.to_string();
    let [monotonic, boottime] = ["--monotonic", "--boottime"].map(str::to_owned);
    [monotonic, seconds.clone(), boottime, seconds]
}

/// Returns an offset into the past that keeps the clock positive.
fn behind() -> i64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    -(seconds as i64 / 2)
}

/// Connects a stream between two clients.
fn stream(from: &Client, to: &Client, channel: &str) -> (Publication, Subscription) {
    let subscription = to.add_subscription(channel, STREAM).unwrap();
    let publication = from.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    (publication, subscription)
}

/// One driver's clock is days ahead, another one's is behind. Streams flow within each driver and between them.
#[test]
fn drivers_with_different_clocks_serve_clients_and_each_other() {
    let test = "drivers_with_different_clocks_serve_clients_and_each_other";
    let Some(namespace) = TimeNamespace::find(test) else {
        return;
    };
    let directories = ["ahead", "behind"].map(Directory::new);
    let [ahead, behind] = [(1_000_000, &directories[0]), (behind(), &directories[1])]
        .map(|(seconds, directory)| namespace.driver(seconds, directory));
    let clients = directories
        .each_ref()
        .map(|directory| builder(directory.path()).connect().unwrap());
    let [one, other] = &clients;
    for client in &clients {
        let (publication, mut subscription) = stream(client, client, "aeron:ipc?term-length=64k");
        exchange_messages(&publication, &mut subscription, MESSAGES);
    }
    for (from, to) in [(one, other), (other, one)] {
        let channel = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        );
        let (publication, mut subscription) = stream(from, to, &channel);
        exchange_messages(&publication, &mut subscription, MESSAGES);
    }
    drop(clients);
    for driver in [ahead, behind] {
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A client whose clock differs from its driver's is served, does not time out while it runs, and times out when
/// stopped.
#[test]
fn client_with_a_different_clock_times_out_only_when_stopped() {
    let test = "client_with_a_different_clock_times_out_only_when_stopped";
    let Some(namespace) = TimeNamespace::find(test) else {
        return;
    };
    for seconds in [1_000_000, behind()] {
        let directory = Directory::new("client-clock");
        let driver = Driver::start(directory.path(), &OPTIONS);
        let observer = Observer::of(directory.path(), driver.pid());
        let client = builder(directory.path()).connect().unwrap();
        let channel = "aeron:ipc?term-length=64k";
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        observer.await_settled();
        let resources = observer.resources();
        let subject = PublisherProcess::command(directory.path(), channel, STREAM);
        let mut subject = PublisherProcess::begin(&mut namespace.begin(seconds, &subject));
        let mut received = Received::from_the_beginning();
        let mut read = || {
            subscription
                .poll(|message, _| received.take(message).unwrap(), 100)
                .unwrap();
            (received.messages, subscription.has_no_images())
        };
        await_true("messages", || read().0 > MESSAGES);
        assert_eq!(observer.count(SystemCounter::ClientTimeouts), 0);
        subject.signal("STOP");
        await_true("the driver to give it up", || {
            observer.count(SystemCounter::ClientTimeouts) == 1 && read().1
        });
        subject.signal("CONT");
        let end = subject.end();
        assert!(
            ["given up", "slept too long"].contains(&end.as_str()),
            "{end}"
        );
        observer.await_resources(&resources);
        drop((client, subscription));
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}
