// SPDX-License-Identifier: Apache-2.0
//! The congestion control of images, chosen by channel, by option or by a user's own supplier (docs/spec/wire.md §5.7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran_core::memory::MemoryStorage;
use taran_driver::congestion::{CongestionControl, ReceiverProgress, WindowUpdate};
use taran_protocol::command::Command;
use taran_protocol::counter::type_id;

use crate::fixture::{DriverFixture, Ready};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SECOND: Duration = Duration::from_secs(1);

/// A publication with a subscriber of the same driver, after three seconds.
fn stream(driver: &mut DriverFixture, subscribed: &str) -> (i64, Ready) {
    let client = driver.client();
    let publication = driver.add_exclusive(client, UDP, 10).unwrap();
    driver.add_subscription(client, subscribed, 10).unwrap();
    driver.run_for(SECOND * 3);
    assert!(driver.errors().is_empty(), "{:?}", driver.errors());
    (client, publication)
}

/// Label and value of the counters of congestion control.
fn indicators(driver: &DriverFixture) -> Vec<(String, i64)> {
    let counters = driver.counters().into_iter();
    counters
        .filter(|meta| meta.type_id == type_id::PER_IMAGE)
        .map(|meta| (meta.label.to_string(), driver.value(meta.id)))
        .collect()
}

fn sender_limit(driver: &DriverFixture) -> i64 {
    let counters = driver.counters();
    let limit = counters
        .iter()
        .find(|meta| meta.type_id == type_id::SENDER_LIMIT);
    driver.value(limit.unwrap().id)
}

#[test]
fn cubic_image_has_indicator_counters_until_it_is_freed() {
    let mut driver = DriverFixture::with(&[("aeron.CubicCongestionControl.measureRtt", "true")]);
    let channel = format!("{UDP}|cc=cubic");
    let (client, publication) = stream(&mut driver, &channel);
    let image = driver
        .counters()
        .iter()
        .find(|meta| meta.type_id == type_id::RECEIVER_POSITION)
        .map(|meta| meta.registration_id)
        .unwrap();
    let session = publication.session_id;
    // Half a term makes 23 datagrams.
    let shown = indicators(&driver);
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
    assert_eq!(sender_limit(&driver), 23 * 1_408);
    driver.ask(&Command::RemovePublication {
        client_id: client,
        correlation_id: driver.id(),
        registration_id: publication.correlation_id,
        revoke: false,
    });
    driver.run_for(SECOND * 20);
    assert_eq!(indicators(&driver), []);
}

#[test]
fn congestion_control_option_overrides_channels() {
    let option = "AERON_CONGESTIONCONTROL_SUPPLIER";
    let mut driver = DriverFixture::with(&[(option, "cubic")]);
    stream(&mut driver, &format!("{UDP}|cc=static"));
    assert_eq!(indicators(&driver).len(), 2);
    let mut driver = DriverFixture::with(&[(option, "static")]);
    stream(&mut driver, &format!("{UDP}|cc=bogus"));
    assert_eq!(indicators(&driver), []);
    let mut driver = DriverFixture::with(&[(option, "default")]);
    stream(&mut driver, UDP);
    assert_eq!(indicators(&driver), []);
}

/// Congestion control with a constant window.
#[derive(Debug)]
struct Narrow(i32);

impl CongestionControl for Narrow {
    fn initial_window(&self) -> i32 {
        self.0
    }

    fn update_window(&mut self, _progress: &ReceiverProgress, _now_ns: i64) -> WindowUpdate {
        WindowUpdate::new(self.0)
    }
}

#[test]
fn supplied_congestion_control_overrides_channels() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let mut driver = DriverFixture::built(MemoryStorage::new(), |context| {
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
    stream(&mut driver, &channel);
    assert_eq!(sender_limit(&driver), 4_096);
    let facts = (10, 65_536, 1_408, 32_768);
    assert_eq!(*asked.lock().unwrap(), [(channel, facts)]);
    // Without the supplier and with an unknown name, no image is created.
    let client = driver.client();
    let other = "aeron:udp?endpoint=localhost:40124|cc=wide";
    driver.add_exclusive(client, other, 11).unwrap();
    driver.add_subscription(client, other, 11).unwrap();
    driver.run_for(SECOND);
    assert!(
        driver.errors()[0].0.contains("cc=wide"),
        "{:?}",
        driver.errors()
    );
}

#[test]
fn receive_window_is_limited_to_half_a_term() {
    for window in [i32::MAX, i32::MIN] {
        let mut driver = DriverFixture::built(MemoryStorage::new(), |context| {
            context.congestion_control(move |_| Some(Box::new(Narrow(window))))
        });
        stream(&mut driver, UDP);
        assert_eq!(sender_limit(&driver), i64::from(window.clamp(0, 32_768)));
    }
}
