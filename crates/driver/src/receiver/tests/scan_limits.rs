// SPDX-License-Identifier: Apache-2.0
//! Limits of how far one poll scans, and of how much is cleared at once.

use super::*;

/// Returns an image with this term length; positions are offsets in the first term.
fn fixture(term_length: i32) -> ReceiverFixture {
    let spec = LogSpec::new(LogKind::Image, SESSION, STREAM, INITIAL_TERM, term_length);
    let region = Region::anonymous(spec.file_length()).unwrap();
    let log = LogBuffers::create(&region, &spec, START).unwrap();
    let mut fixture = ReceiverFixture::new();
    fixture.log = log;
    fixture.connect(|_| {});
    fixture.socket.sent();
    fixture
}

/// Returns a frame at an offset of the first term.
fn frame(offset: i64, length: i32) -> Vec<u8> {
    let header = DataHeader {
        header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, FrameType::DATA),
        ..DataHeader::heartbeat(0, SESSION, STREAM, INITIAL_TERM, offset as i32)
    };
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(length as usize, 7);
    bytes
}

/// Returns offset and length of the next NAK.
fn next_nak(fixture: &mut ReceiverFixture) -> (i64, i32) {
    for _ in 0..1_000 {
        let sent = fixture.sent_after(1_000);
        if let Some(nak) = sent.iter().find(|it| it[6] == 2) {
            let field = |at: usize| i32::from_le_bytes(nak[at..at + 4].try_into().unwrap());
            return (i64::from(field(20)), field(24));
        }
    }
    panic!("no NAK sent");
}

#[test]
fn gap_longer_than_scan_limit_is_naked_in_parts() {
    const STEP: i32 = 256 * 1024;
    let mut fixture = fixture(1 << 20);
    let end = START + i64::from(STEP) + 32_000;
    let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, INITIAL_TERM, end as i32);
    fixture.arrive(heartbeat.as_bytes());
    assert_eq!(next_nak(&mut fixture), (START, STEP));
    for index in 0..8 {
        fixture.arrive(&frame(START + index * 32_768, 32_768));
    }
    assert_eq!(fixture.positions(), (end - START, i64::from(STEP)));
    assert_eq!(next_nak(&mut fixture), (START + i64::from(STEP), 32_000));
    fixture.arrive(&frame(START + i64::from(STEP), 32_000));
    assert_eq!(fixture.positions(), (end - START, end - START));
}

#[test]
fn rebuild_position_advances_over_all_data_in_one_poll() {
    let mut fixture = fixture(1 << 20);
    // The first frame arrives last.
    for index in (0..14).rev() {
        assert_eq!(fixture.rebuild_position.get(), START);
        fixture.arrive(&frame(START + index * 32_768, 32_768));
    }
    assert_eq!(fixture.positions(), (14 * 32_768, 14 * 32_768));
}

#[test]
fn frame_beyond_clear_limit_is_inserted_on_retransmission() {
    const EMPTIED: i64 = 16 << 20;
    let mut fixture = fixture(64 << 20);
    let ahead = START + EMPTIED + 4_096;
    fixture.arrive(&frame(ahead, 64));
    assert_eq!(fixture.positions(), (64 + EMPTIED + 4_096, 0));
    let slot = |position: i64| {
        let bytes = fixture.log.term(0).bytes(position as usize, 4).to_vec();
        i32::from_le_bytes(bytes.try_into().unwrap())
    };
    assert_eq!(slot(START + EMPTIED), 0);
    assert_eq!(
        slot(START + EMPTIED + 32),
        32,
        "stale, and not readable yet"
    );
    fixture.arrive(&frame(ahead, 64));
    let slot = |position: i64| {
        let bytes = fixture.log.term(0).bytes(position as usize, 4).to_vec();
        i32::from_le_bytes(bytes.try_into().unwrap())
    };
    assert_eq!(
        (slot(ahead - 32), slot(ahead), slot(ahead + 64)),
        (0, 64, 0)
    );
}
