//! Drivers and clients whose monotonic clocks have nothing in common: time namespaces, as containers have that were moved
//! from another machine. What processes tell each other is told in the time of day, which these do not touch; how long
//! something lasts, each measures with its own clock.

use std::fs;
use std::process::Command;

use taran::{Client, Publication, Subscription};
use taran_protocol::counter::SystemCounter;

use crate::bench::{OPTIONS, PORT, await_true, carry, context};
use crate::message::Received;
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::own_namespaces::{Flags, cannot_be_had};
use crate::process::{Directory, Driver, taran};
use crate::subject::Subject;

const STREAM: i32 = 79;
const MESSAGES: u64 = 500;

/// With the value `1`, a test that finds no time namespaces fails.
const REQUIRED: &str = "TARAN_REQUIRE_TIME_NAMESPACES";

/// How to begin a program in a time namespace of its own, as root or as root of a user namespace.
#[derive(Clone, Copy)]
struct Elsewhere {
    flags: Flags,
}

impl Elsewhere {
    /// `None`, loudly, where this kernel or this user makes no time namespaces.
    fn find(test: &str) -> Option<Elsewhere> {
        let ways: [Flags; 2] = [&["-T"], &["-r", "-T"]];
        let works = |flags: &Flags| {
            let mut unshare = Command::new("unshare");
            let output = unshare.args(*flags).args(offset(1)).arg("true").output();
            output.is_ok_and(|output| output.status.success())
        };
        let found = ways.into_iter().find(works);
        if found.is_none() {
            cannot_be_had(
                REQUIRED,
                test,
                "time namespaces cannot be made here (unshare -T)",
            );
        }
        found.map(|flags| Elsewhere { flags })
    }

    /// The same program, with monotonic clocks that differ from ours by so many seconds.
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

/// A clock that is behind ours, but not before the beginning of time.
fn behind() -> i64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    -(seconds as i64 / 2)
}

/// A stream from one client to another.
fn stream(from: &Client, to: &Client, channel: &str) -> (Publication, Subscription) {
    let subscription = to.add_subscription(channel, STREAM).unwrap();
    let publication = from.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    (publication, subscription)
}

/// One driver is days ahead, another one behind, the clients are here: streams flow within a driver and between them.
#[test]
fn drivers_with_clocks_of_their_own_serve_clients_and_each_other() {
    let test = "drivers_with_clocks_of_their_own_serve_clients_and_each_other";
    let Some(elsewhere) = Elsewhere::find(test) else {
        return;
    };
    let directories = ["ahead", "behind"].map(Directory::new);
    let [ahead, behind] = [(1_000_000, &directories[0]), (behind(), &directories[1])]
        .map(|(seconds, directory)| elsewhere.driver(seconds, directory));
    let clients = directories
        .each_ref()
        .map(|directory| context(directory.path()).connect().unwrap());
    let [one, other] = &clients;
    for client in &clients {
        let (publication, mut subscription) = stream(client, client, "aeron:ipc?term-length=64k");
        carry(&publication, &mut subscription, MESSAGES);
    }
    for (from, to) in [(one, other), (other, one)] {
        let channel = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        );
        let (publication, mut subscription) = stream(from, to, &channel);
        carry(&publication, &mut subscription, MESSAGES);
    }
    drop(clients);
    for driver in [ahead, behind] {
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A client with another clock than its driver's is served, is not taken for dead while it lives, and is when it stands
/// still.
#[test]
fn a_client_with_a_clock_of_its_own_lives_and_dies_as_others_do() {
    let test = "a_client_with_a_clock_of_its_own_lives_and_dies_as_others_do";
    let Some(elsewhere) = Elsewhere::find(test) else {
        return;
    };
    for seconds in [1_000_000, behind()] {
        let directory = Directory::new("client-clock");
        let driver = Driver::start(directory.path(), &OPTIONS);
        let observer = Observer::of(directory.path(), driver.pid());
        let client = context(directory.path()).connect().unwrap();
        let channel = "aeron:ipc?term-length=64k";
        let mut subscription = client.add_subscription(channel, STREAM).unwrap();
        observer.await_settled();
        let level = observer.level();
        let subject = Subject::command(directory.path(), channel, STREAM);
        let mut subject = Subject::begin(&mut elsewhere.begin(seconds, &subject));
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
        observer.await_level(&level);
        drop((client, subscription));
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}
