// SPDX-License-Identifier: Apache-2.0
//! Streams that are revoked, rejected, or not consumed. Official clients on both sides, on a Taran driver, and between
//! it and the official one in both directions.

use std::path::Path;

use crate::drivers::Driver;
use crate::exchange::udp;
use crate::java::{self, argument};
use crate::program::Program;
use crate::require_java;

pub(crate) fn ours() -> Driver {
    Driver::taran("stream-ends-ours", &OURS)
}

pub(crate) fn theirs() -> Driver {
    Driver::official("stream-ends-theirs", &THEIRS)
}

const OURS: [(&str, &str); 4] = [
    ("AERON_TIMER_INTERVAL", "100ms"),
    ("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "500ms"),
    ("AERON_UNTETHERED_LINGER_TIMEOUT", "500ms"),
    ("AERON_UNTETHERED_RESTING_TIMEOUT", "500ms"),
];
const THEIRS: [(&str, &str); 4] = [
    ("aeron.timer.interval", "100ms"),
    ("aeron.untethered.window.limit.timeout", "500ms"),
    ("aeron.untethered.linger.timeout", "500ms"),
    ("aeron.untethered.resting.timeout", "500ms"),
];

/// Image liveness timeout of drivers that have to detect silent streams quickly. Not for tests in which streams must
/// last: a busy machine can stall for such a time, and with a lingering untethered subscriber the official receiver
/// never accepts the stream again.
const SHORT_LIVENESS: &str = "2s";

fn ours_with_short_timeouts() -> Driver {
    let liveness = ("AERON_IMAGE_LIVENESS_TIMEOUT", SHORT_LIVENESS);
    Driver::taran("stream-ends-ours", &[&OURS[..], &[liveness]].concat())
}

fn theirs_with_short_timeouts() -> Driver {
    let liveness = ("aeron.image.liveness.timeout", SHORT_LIVENESS);
    Driver::official("stream-ends-theirs", &[&THEIRS[..], &[liveness]].concat())
}

fn start(program: &str, dir: &Path, channel: &str, more: &[String]) -> Program {
    let mut arguments = vec![
        argument("dir", dir.display()),
        argument("channel", channel),
        argument("count", 100),
        argument("timeout", 240),
    ];
    arguments.extend_from_slice(more);
    java::start(program, &arguments)
}

/// Calls `act` with the publisher's driver, the subscriber's driver, and a channel.
fn for_each_direction(ours: &Driver, theirs: &Driver, act: impl Fn(&Path, &Path, &str)) {
    for (from, to) in [(ours, theirs), (theirs, ours), (ours, ours)] {
        // Printed only if the test fails.
        eprintln!("from {} to {}", from.dir().display(), to.dir().display());
        act(from.dir(), to.dir(), &udp("|term-length=64k"));
    }
    eprintln!("by shared memory");
    act(ours.dir(), ours.dir(), "aeron:ipc?term-length=64k");
}

#[test]
fn revoked_stream_is_reported_as_revoked() {
    require_java!();
    for_each_direction(&ours(), &theirs(), |from, to, channel| {
        let mut subscriber = start("live-subscriber", to, channel, &[]);
        subscriber.expect("SUBSCRIBED");
        let mut publisher = start("live-publisher", from, channel, &[argument("revoke", true)]);
        subscriber.expect("RECEIVED");
        publisher.release();
        publisher.expect("REVOKED");
        let gone = subscriber.expect("UNAVAILABLE");
        assert!(gone.contains("revoked=true"), "{channel}: {gone}");
        publisher.finish();
        subscriber.finish();
    });
}

#[test]
fn closed_stream_is_not_reported_as_revoked() {
    require_java!();
    for_each_direction(&ours(), &theirs(), |from, to, channel| {
        let mut subscriber = start("live-subscriber", to, channel, &[]);
        subscriber.expect("SUBSCRIBED");
        let publisher = start("live-publisher", from, channel, &[]);
        subscriber.expect("RECEIVED");
        publisher.finish();
        let gone = subscriber.expect("UNAVAILABLE");
        assert!(
            gone.contains("revoked=false") && gone.contains("eos=true"),
            "{channel}: {gone}"
        );
        subscriber.finish();
    });
}

#[test]
fn rejected_image_is_reported_to_the_publisher_and_rejoins() {
    require_java!();
    let ours = ours_with_short_timeouts();
    ours.expect_error("errorMessage=no sense in it");
    for_each_direction(&ours, &theirs_with_short_timeouts(), |from, to, channel| {
        let mut publisher = start("live-publisher", from, channel, &[]);
        let session: i32 = Program::value(&publisher.expect("PUBLICATION"), "session");
        let reject = argument("reject", "no sense in it");
        let mut subscriber = start("live-subscriber", to, channel, &[reject]);
        subscriber.expect("RECEIVED");
        let reported = publisher.expect("PUBLICATION_ERROR");
        assert_eq!(
            reported,
            format!("code=13 session={session} text=no sense in it"),
            "{channel}"
        );
        subscriber.expect("UNAVAILABLE");
        // After the cool-down, the stream is received again.
        subscriber.expect("AVAILABLE");
        let said = subscriber.finish();
        assert_eq!(
            said.iter().filter(|line| line.starts_with("REJ")).count(),
            1
        );
        let said = publisher.finish();
        let errors = said
            .iter()
            .filter(|line| line.starts_with("PUBLICATION_ERROR"));
        assert_eq!(errors.count(), 1, "{channel}: {said:#?}");
        assert!(said.iter().any(|line| line == "DISCONNECTED"), "{said:#?}");
    });
}

#[test]
fn untethered_subscriber_is_detached_and_rejoins() {
    require_java!();
    for_each_direction(&ours(), &theirs(), |from, to, channel| {
        let mut tethered = start("live-subscriber", to, channel, &[]);
        tethered.expect("SUBSCRIBED");
        let loose = format!("{channel}|tether=false");
        let mut loose = start("live-subscriber", to, &loose, &[argument("stall", true)]);
        loose.expect("SUBSCRIBED");
        let length = argument("length", 1_000);
        let publisher = start("live-publisher", from, channel, &[length]);
        loose.expect("AVAILABLE");
        loose.expect("RECEIVED");
        loose.expect("UNAVAILABLE");
        loose.expect("AVAILABLE");
        publisher.finish();
        tethered.expect("UNAVAILABLE");
        for subscriber in [tethered, loose] {
            subscriber.finish();
        }
    });
}

/// The sender is stopped until its stream times out, while a detached subscriber lingers. The official receiver then
/// waits for that subscriber forever, and the stream never returns.
#[test]
fn stream_timed_out_with_lingering_subscriber_rejoins() {
    require_java!();
    let from = theirs_with_short_timeouts();
    let patient = [
        ("AERON_TIMER_INTERVAL", "100ms"),
        ("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "500ms"),
        ("AERON_UNTETHERED_LINGER_TIMEOUT", "60s"),
        ("AERON_IMAGE_LIVENESS_TIMEOUT", SHORT_LIVENESS),
    ];
    let to = Driver::taran("stream-ends-patient", &patient);
    let channel = udp("|term-length=64k");
    let mut tethered = start("live-subscriber", to.dir(), &channel, &[]);
    tethered.expect("SUBSCRIBED");
    let loose = format!("{channel}|tether=false");
    let mut loose = start(
        "live-subscriber",
        to.dir(),
        &loose,
        &[argument("stall", true)],
    );
    loose.expect("SUBSCRIBED");
    let length = argument("length", 1_000);
    let publisher = start("live-publisher", from.dir(), &channel, &[length]);
    loose.expect("RECEIVED");
    loose.expect("UNAVAILABLE");
    from.stop_during(|| {
        tethered.expect("UNAVAILABLE");
    });
    for subscriber in [&mut tethered, &mut loose] {
        subscriber.expect("AVAILABLE");
    }
    publisher.finish();
    for subscriber in [tethered, loose] {
        subscriber.finish();
    }
}
