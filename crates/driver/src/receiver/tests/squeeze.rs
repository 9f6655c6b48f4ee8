//! Windows are narrowed while a socket loses what it has no room for.

use super::*;

/// Half of what this buffer has room for is half of the window.
fn rig() -> Rig {
    let rig = Rig::connected();
    rig.socket.set_receive_buffer(2 * WINDOW as usize);
    rig
}

/// Something comes in, which is when losses are looked for. The receiver window of the status message that is sent next.
fn told(rig: &mut Rig) -> i32 {
    rig.now_ns += 201 * MS;
    rig.heartbeat(0, START);
    let sent = rig.sent_after(MS);
    let status = sent.iter().rfind(|it| it[6] == 3).expect("there is one");
    i32::from_le_bytes(status[24..28].try_into().unwrap())
}

#[test]
fn a_socket_that_overflows_is_sent_less_until_it_has_room() {
    let mut rig = rig();
    assert_eq!(told(&mut rig), WINDOW);
    for _ in 0..3 {
        rig.socket.overflow(1);
        rig.now_ns += 1_000 * MS;
        assert_eq!(told(&mut rig), WINDOW / 2, "not less: that fits");
    }
    assert_eq!(
        told(&mut rig),
        WINDOW,
        "what was lost once does not count again"
    );
}

#[test]
fn a_window_that_fits_stays() {
    let mut rig = Rig::connected();
    rig.socket.overflow(1);
    assert_eq!(told(&mut rig), WINDOW);
}
