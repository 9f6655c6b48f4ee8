// SPDX-License-Identifier: Apache-2.0
//! Limits of what is received per poll of a socket.

use super::*;

/// Datagrams, or GRO batches, per receive batch.
const BATCH: i64 = 16;

/// Places `noise` small datagrams before one of the stream. Returns the number of receive calls in one duty cycle and
/// whether the stream's datagram was received.
fn receive_behind(noise: i64) -> (usize, bool) {
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
fn poll_small_datagrams_reaches_stream_behind_them() {
    assert_eq!(
        receive_behind(BATCH - 2),
        (1, true),
        "no second receive call"
    );
    assert_eq!(receive_behind(BATCH), (2, true));
    assert_eq!(receive_behind(4 * BATCH - 1), (4, true));
}

#[test]
fn poll_flood_is_limited_to_four_batches() {
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
fn poll_gro_batches_is_limited_to_128_kib() {
    let mut fixture = ReceiverFixture::connected();
    // Invalid GRO batches of 32 KiB, which look like a stream to the receiver.
    let gro_batch = vec![0xFF; 32 * 1024];
    for _ in 0..2 * BATCH {
        fixture.socket.arrive_batch(&gro_batch, 1_024);
    }
    // First a whole batch; then, with the length known, 128 KiB at a time.
    for gro_batches in [BATCH, BATCH + 4, BATCH + 8] {
        fixture.cycle();
        assert_eq!(
            fixture.counters.bytes_received.get(),
            gro_batches * 32 * 1024
        );
    }
}
