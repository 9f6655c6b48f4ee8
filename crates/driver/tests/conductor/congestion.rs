//! The congestion control of images, chosen by channel, by option or by a user's own supplier (docs/spec/wire.md §5.7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran_core::memory::MemoryStorage;
use taran_driver::congestion::{CongestionControl, ReceiverProgress, WindowUpdate};
use taran_protocol::command::Command;
use taran_protocol::counter::type_id;

use crate::bench::{Bench, Ready};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SECOND: Duration = Duration::from_secs(1);

/// A publication with a subscriber of the same driver, after three seconds.
fn stream(bench: &mut Bench, subscribed: &str) -> (i64, Ready) {
    let client = bench.client();
    let publication = bench.add_exclusive(client, UDP, 10).unwrap();
    bench.add_subscription(client, subscribed, 10).unwrap();
    bench.run_for(SECOND * 3);
    assert!(bench.errors().is_empty(), "{:?}", bench.errors());
    (client, publication)
}

/// Label and value of the counters of congestion control.
fn indicators(bench: &Bench) -> Vec<(String, i64)> {
    let counters = bench.counters().into_iter();
    counters
        .filter(|meta| meta.type_id == type_id::PER_IMAGE)
        .map(|meta| (meta.label.to_string(), bench.value(meta.id)))
        .collect()
}

fn sender_limit(bench: &Bench) -> i64 {
    let counters = bench.counters();
    let limit = counters
        .iter()
        .find(|meta| meta.type_id == type_id::SENDER_LIMIT);
    bench.value(limit.unwrap().id)
}

#[test]
fn cubic_shows_its_window_and_takes_its_counters_along() {
    let mut bench = Bench::with(&[("aeron.CubicCongestionControl.measureRtt", "true")]);
    let channel = format!("{UDP}|cc=cubic");
    let (client, publication) = stream(&mut bench, &channel);
    let image = bench
        .counters()
        .iter()
        .find(|meta| meta.type_id == type_id::RECEIVER_POSITION)
        .map(|meta| meta.registration_id)
        .unwrap();
    let session = publication.session_id;
    // Half a term makes 23 datagrams.
    let shown = indicators(&bench);
    assert_eq!(
        shown[0].0,
        format!("rcv-cc-cubic-rtt: {image} {session} 10 {channel}")
    );
    assert!((0..=5_000_000).contains(&shown[0].1), "{shown:?}");
    assert_eq!(
        shown[1],
        (
            format!("rcv-cc-cubic-wnd: {image} {session} 10 {channel}"),
            23 * 1_408
        )
    );
    assert_eq!(sender_limit(&bench), 23 * 1_408);
    bench.ask(&Command::RemovePublication {
        client_id: client,
        correlation_id: bench.id(),
        registration_id: publication.correlation_id,
        revoke: false,
    });
    bench.run_for(SECOND * 20);
    assert_eq!(indicators(&bench), []);
}

#[test]
fn the_option_decides_whatever_channels_say() {
    let option = "AERON_CONGESTIONCONTROL_SUPPLIER";
    let mut bench = Bench::with(&[(option, "cubic")]);
    stream(&mut bench, &format!("{UDP}|cc=static"));
    assert_eq!(indicators(&bench).len(), 2);
    let mut bench = Bench::with(&[(option, "static")]);
    stream(&mut bench, &format!("{UDP}|cc=bogus"));
    assert_eq!(indicators(&bench), []);
    let mut bench = Bench::with(&[(option, "default")]);
    stream(&mut bench, UDP);
    assert_eq!(indicators(&bench), []);
}

/// A window of one's own.
#[derive(Debug)]
struct Narrow(i32);

impl CongestionControl for Narrow {
    fn initial_window(&self) -> i32 {
        self.0
    }

    fn update_window(&mut self, _progress: &ReceiverProgress, _now_ns: i64) -> WindowUpdate {
        WindowUpdate {
            window: self.0,
            is_urgent: false,
        }
    }
}

#[test]
fn a_users_own_congestion_control_comes_first() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let mut bench = Bench::built(MemoryStorage::new(), |context| {
        context.congestion_control(move |stream| {
            let facts = (
                stream.stream_id,
                stream.term_length,
                stream.mtu,
                stream.max_window,
            );
            seen.lock()
                .unwrap()
                .push((stream.channel.to_owned(), facts));
            let is_mine = stream.channel.contains("cc=narrow");
            is_mine.then(|| Box::new(Narrow(4_096)) as Box<dyn CongestionControl>)
        })
    });
    let channel = format!("{UDP}|cc=narrow");
    stream(&mut bench, &channel);
    assert_eq!(sender_limit(&bench), 4_096);
    let facts = (10, 65_536, 1_408, 32_768);
    assert_eq!(*asked.lock().unwrap(), [(channel, facts)]);
    // Without it, and with a name that nobody knows, there is no image.
    let client = bench.client();
    let other = "aeron:udp?endpoint=localhost:40124|cc=wide";
    bench.add_exclusive(client, other, 11).unwrap();
    bench.add_subscription(client, other, 11).unwrap();
    bench.run_for(SECOND);
    assert!(
        bench.errors()[0].0.contains("cc=wide"),
        "{:?}",
        bench.errors()
    );
}

#[test]
fn no_window_is_wider_than_half_a_term() {
    for window in [i32::MAX, i32::MIN] {
        let mut bench = Bench::built(MemoryStorage::new(), |context| {
            context.congestion_control(move |_| Some(Box::new(Narrow(window))))
        });
        stream(&mut bench, UDP);
        assert_eq!(sender_limit(&bench), i64::from(window.clamp(0, 32_768)));
    }
}
