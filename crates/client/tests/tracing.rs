// SPDX-License-Identifier: Apache-2.0
//! Events of the feature `tracing`.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

#[allow(dead_code)] // shared with the other tests
#[path = "client/fake_driver.rs"]
mod fake_driver;

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_driver::{Fixture, builder};
use taran::{ClientError, ReconnectingClient};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Events as lines: level, target, text, and the names of the fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                if field.name() == "message" {
                    write!(self.0, " {value:?}").unwrap();
                } else {
                    write!(self.0, " {}={value:?}", field.name()).unwrap();
                }
            }
        }
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns the events during `run`.
fn events(lines: &Lines, run: impl FnOnce()) -> Vec<String> {
    tracing::subscriber::with_default(lines.clone(), run);
    lines.take()
}

fn contains(events: &[String], parts: &[&str]) -> bool {
    let matches = |event: &String| parts.iter().all(|part| event.contains(part));
    events.iter().filter(|event| matches(event)).count() == 1
}

#[test]
fn connection_resources_and_loss_are_events() {
    let lines = Lines::default();
    let mut fixture = None;
    let connected = events(&lines, || {
        fixture = Some(Fixture::with(|builder| {
            builder
                .client_name("pricing")
                .on_error(|_: &ClientError| ())
        }));
    });
    assert_eq!(connected.len(), 1, "{connected:?}");
    assert!(connected[0].starts_with("INFO taran connected to the media driver client_id="));
    assert!(connected[0].contains("client_name=pricing aeron_dir=/fake/aeron"));

    let mut fixture = fixture.unwrap();
    let mut resources = None;
    let added = events(&lines, || {
        resources = Some((fixture.subscription(10), fixture.publication(10)));
        fixture.run_cycles();
    });
    assert!(
        contains(
            &added,
            &[
                "DEBUG taran subscription added",
                "channel=aeron:ipc",
                "stream_id=10"
            ]
        ),
        "{added:?}"
    );
    assert!(
        contains(&added, &["DEBUG taran publication added", "session_id="]),
        "{added:?}"
    );
    assert!(
        contains(&added, &["DEBUG taran image available", "session_id="]),
        "{added:?}"
    );

    let (mut subscription, publication) = resources.unwrap();
    let data = events(&lines, || {
        for _ in 0..10 {
            publication.offer(b"message").unwrap();
            subscription.poll(|_, _| (), 10).unwrap();
        }
    });
    assert!(data.is_empty(), "{data:?}");

    let ended = events(&lines, || {
        drop(publication);
        fixture.run_cycles();
    });
    assert!(
        contains(
            &ended,
            &["DEBUG taran resource removed", "kind=publication"]
        ),
        "{ended:?}"
    );
    assert!(
        contains(&ended, &["DEBUG taran image unavailable", "position=640"]),
        "{ended:?}"
    );

    let lost = events(&lines, || {
        fixture.driver.set_heartbeat_ms(-1);
        fixture.clock.advance(Duration::from_secs(1));
        fixture.client.do_work(fixture.clock.read());
    });
    assert!(
        contains(&lost, &["WARN taran media driver lost", "has shut down"]),
        "{lost:?}"
    );
    assert!(
        contains(&lost, &["ERROR taran client error", "has shut down"]),
        "{lost:?}"
    );
}

#[test]
fn reconnecting_client_tells_when_it_waits_and_why() {
    let lines = Lines::default();
    let clock = taran::ManualClock::new(fake_driver::START);
    let storage = taran::MemoryStorage::new();
    let time = clock.clone();
    let mut client = ReconnectingClient::new(move || builder(&storage, &time));
    let waiting = events(&lines, || {
        for _ in 0..110 {
            client.do_work(clock.read()).unwrap();
            clock.advance(Duration::from_millis(100));
        }
    });
    assert!(
        contains(
            &waiting,
            &[
                "INFO taran waiting for a media driver",
                "aeron_dir=/fake/aeron"
            ]
        ),
        "{waiting:?}"
    );
    assert!(
        contains(
            &waiting,
            &["INFO taran connecting failed", "no media driver runs in"]
        ),
        "{waiting:?}"
    );
}
