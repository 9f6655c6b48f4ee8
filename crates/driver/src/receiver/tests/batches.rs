//! How much of what has arrived is taken in one look at a socket.

use super::*;

/// Datagrams, or trains of them, in a batch.
const BATCH: i64 = 16;

/// So many datagrams of noise before one of the stream. How often the socket is asked in one duty cycle, and whether the
/// stream got on.
fn behind(noise: i64) -> (usize, bool) {
    let mut fixture = ReceiverFixture::connected();
    for _ in 0..noise {
        fixture.socket.arrive(b"noise");
    }
    fixture.socket.arrive(&data(START, &[64]));
    let before = fixture.socket.receive_calls();
    fixture.cycle();
    (
        fixture.socket.receive_calls() - before,
        fixture.positions() == (64, 64),
    )
}

#[test]
fn a_crowd_of_little_datagrams_does_not_hold_up_the_stream_behind_it() {
    assert_eq!(behind(BATCH - 2), (1, true), "and is not asked again");
    assert_eq!(behind(BATCH), (2, true));
    assert_eq!(behind(4 * BATCH - 1), (4, true));
}

#[test]
fn a_flood_of_little_datagrams_leaves_time_for_others() {
    let mut fixture = ReceiverFixture::connected();
    for _ in 0..10 * BATCH {
        fixture.socket.arrive(b"noise");
    }
    for cycles in 1..=2 {
        fixture.cycle();
        assert_eq!(fixture.counters.invalid_packets.get(), cycles * 4 * BATCH);
    }
}

#[test]
fn a_fast_stream_is_looked_after_before_more_of_it_is_taken() {
    let mut fixture = ReceiverFixture::connected();
    // Noise that could be a stream: trains of 32 KiB.
    let train = vec![0xFF; 32 * 1024];
    for _ in 0..2 * BATCH {
        fixture.socket.arrive_train(&train, 1_024);
    }
    // A whole batch once; then what is known to be in trains, 128 KiB at a time.
    for trains in [BATCH, BATCH + 4, BATCH + 8] {
        fixture.cycle();
        assert_eq!(fixture.counters.bytes_received.get(), trains * 32 * 1024);
    }
}
