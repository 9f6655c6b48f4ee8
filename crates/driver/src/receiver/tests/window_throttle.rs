// SPDX-License-Identifier: Apache-2.0
//! The advertised window is reduced while a socket drops datagrams.

use super::*;

/// Half of the window fits into this buffer.
fn fixture() -> ReceiverFixture {
    let fixture = ReceiverFixture::connected();
    fixture.socket.set_receive_buffer(2 * WINDOW as usize);
    fixture
}

/// Triggers a drop check. Returns the window in the status message that is sent next.
fn advertised_window(fixture: &mut ReceiverFixture) -> i32 {
    fixture.now_ns += 201 * MS;
    fixture.heartbeat(0, START);
    let sent = fixture.sent_after(MS);
    let status = sent
        .iter()
        .rfind(|it| it[6] == 3)
        .expect("a status message was sent");
    i32::from_le_bytes(status[24..28].try_into().unwrap())
}

#[test]
fn overflowing_socket_halves_advertised_window_until_drops_end() {
    let mut fixture = fixture();
    assert_eq!(advertised_window(&mut fixture), WINDOW);
    for _ in 0..3 {
        fixture.socket.overflow(1);
        fixture.now_ns += 1_000 * MS;
        assert_eq!(
            advertised_window(&mut fixture),
            WINDOW / 2,
            "a window that fits is not reduced further"
        );
    }
    assert_eq!(
        advertised_window(&mut fixture),
        WINDOW,
        "drops are counted once"
    );
}

#[test]
fn window_within_share_is_not_reduced() {
    let mut fixture = ReceiverFixture::connected();
    fixture.socket.overflow(1);
    assert_eq!(advertised_window(&mut fixture), WINDOW);
}
