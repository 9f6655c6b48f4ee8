// SPDX-License-Identifier: Apache-2.0
//! An image without a receiver: the test acts for it.

use super::super::super::subscribers::Subscriber;
use super::*;
use crate::testing::*;

const WINDOW: i32 = TERM_LENGTH / 2;
const TERM: i64 = TERM_LENGTH as i64;

/// An image that joined at position 0.
struct Fixture {
    image: Image,
    shared: Arc<ImageShared>,
}

impl Fixture {
    fn new() -> Self {
        let buffers = log(taran_protocol::log::LogKind::Image, 0);
        let shared = Arc::new(ImageShared::new(0, WINDOW));
        let parts = ImageParts {
            id: ImageId(5),
            endpoint: EndpointId(1),
            session_id: SESSION,
            stream_id: STREAM,
            source_identity: String::new(),
            rejoin: true,
            wants_response: false,
            subscribers: Subscribers::default(),
            counters: ImageCounters {
                high_water_mark: Counter::detached(),
                rebuild_position: Counter::detached(),
                naks_sent: Counter::detached(),
                congestion: Vec::new(),
            },
            file: LogFile::detached(),
            buffers,
            shared: Arc::clone(&shared),
            window: WINDOW,
            timeouts: ImageTimeouts {
                status_message_ns: 200 * MS,
                liveness_ns: 10_000 * MS,
                untethered: Untethered {
                    window_limit_timeout_ns: 5_000 * MS,
                    linger_timeout_ns: None,
                    resting_timeout_ns: 10_000 * MS,
                },
            },
        };
        Self {
            image: Image::new(parts, 0, 0),
            shared,
        }
    }

    /// Adds a subscription whose client has read up to `position`.
    fn join(&mut self, id: i64, tether: bool, position: i64) -> Counter {
        let counter = Counter::detached();
        counter.set(position);
        self.image
            .subscribers
            .add(Subscriber::new(id, counter.clone(), tether, true, 0));
        counter
    }

    fn update(&mut self) -> i64 {
        for _ in 0..8 {
            self.image.update(0);
        }
        self.shared.free_position()
    }
}

#[test]
fn update_keeps_unread_data_of_late_subscriber() {
    let mut fixture = Fixture::new();
    fixture.join(1, true, 2 * TERM);
    let late = fixture.join(2, true, TERM + 64);
    // The receiver does not know the second subscriber yet.
    fixture.shared.receiver_status(2 * TERM, WINDOW);
    assert_eq!(fixture.update(), 64);
    late.set(i64::MIN);
    assert_eq!(fixture.update(), 64);
    late.set(TERM + 133);
    assert_eq!(fixture.update(), 128, "at a frame offset");
    late.set(i64::MAX);
    assert_eq!(fixture.update(), TERM);
}

#[test]
fn image_ignores_values_clients_write_to_driver_counters() {
    let mut fixture = Fixture::new();
    let reader = fixture.join(1, true, 640);
    fixture.shared.receiver_rebuilt(640);
    for value in [i64::MIN, -1, i64::MAX] {
        fixture.image.counters.rebuild_position.set(value);
        assert_eq!(fixture.image.join_position(), 640);
        assert!(fixture.image.is_drained());
    }
    reader.set(608);
    assert!(!fixture.image.is_drained());
}
