//! An image without a receiver: the test acts for it.

use super::super::super::subscribers::Subscriber;
use super::*;
use crate::testing::*;

const WINDOW: i32 = TERM_LENGTH / 2;
const TERM: i64 = TERM_LENGTH as i64;

/// An image that joined at position 0.
struct Rig {
    image: Image,
    shared: Arc<ImageShared>,
}

impl Rig {
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
fn what_a_late_subscriber_has_yet_to_read_is_not_freed() {
    let mut rig = Rig::new();
    rig.join(1, true, 2 * TERM);
    let late = rig.join(2, true, TERM + 64);
    // The receiver does not know the second subscriber yet.
    rig.shared.receiver_status(2 * TERM, WINDOW);
    assert_eq!(rig.update(), 64);
    late.set(i64::MIN);
    assert_eq!(rig.update(), 64);
    late.set(TERM + 133);
    assert_eq!(rig.update(), 128, "at a frame offset");
    late.set(i64::MAX);
    assert_eq!(rig.update(), TERM);
}

#[test]
fn what_clients_write_into_the_counters_of_the_driver_is_not_believed() {
    let mut rig = Rig::new();
    let reader = rig.join(1, true, 640);
    rig.shared.receiver_rebuilt(640);
    for lie in [i64::MIN, -1, i64::MAX] {
        rig.image.counters.rebuild_position.set(lie);
        assert_eq!(rig.image.join_position(), 640);
        assert!(rig.image.is_drained());
    }
    reader.set(608);
    assert!(!rig.image.is_drained());
}
