//! Windows are narrowed while a socket loses what it has no room for.

use super::*;

/// Half of what this buffer has room for is half of the window.
fn fixture() -> ReceiverFixture {
    let fixture = ReceiverFixture::connected();
    fixture.socket.set_receive_buffer(2 * WINDOW as usize);
    fixture
}

/// Something comes in, which is when losses are looked for. The receiver window of the status message that is sent next.
fn told(fixture: &mut ReceiverFixture) -> i32 {
    fixture.now_ns += 201 * MS;
    fixture.heartbeat(0, START);
    let sent = fixture.sent_after(MS);
    let status = sent.iter().rfind(|it| it[6] == 3).expect("there is one");
    i32::from_le_bytes(status[24..28].try_into().unwrap())
}

#[test]
fn a_socket_that_overflows_is_sent_less_until_it_has_room() {
    let mut fixture = fixture();
    assert_eq!(told(&mut fixture), WINDOW);
    for _ in 0..3 {
        fixture.socket.overflow(1);
        fixture.now_ns += 1_000 * MS;
        assert_eq!(told(&mut fixture), WINDOW / 2, "not less: that fits");
    }
    assert_eq!(
        told(&mut fixture),
        WINDOW,
        "what was lost once does not count again"
    );
}

#[test]
fn a_window_that_fits_stays() {
    let mut fixture = ReceiverFixture::connected();
    fixture.socket.overflow(1);
    assert_eq!(told(&mut fixture), WINDOW);
}
