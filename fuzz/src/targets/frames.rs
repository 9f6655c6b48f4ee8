// SPDX-License-Identifier: Apache-2.0
//! Datagrams, parsed: accepted frames are in bounds, and parse to the same values after they are written again.

use taran_protocol::frame::{
    ERROR_FRAME_LENGTH_MAX, ErrorFrame, Frame, IntoBytes, ResolutionEntry, Resolutions,
    write_resolution,
};

use crate::allocation;

const TERM_LENGTHS: [i32; 3] = [64 * 1024, 16 * 1024 * 1024, 1 << 30];

/// Parses a datagram.
pub fn run(datagram: &[u8]) {
    // Parsing does not allocate; `entries`, below, does.
    let Some(frame) = allocation::within(0, || Frame::parse(datagram).ok()) else {
        return;
    };
    match frame {
        Frame::Data(data) => {
            assert_eq!(data.body(), &datagram[32..]);
            for term_length in TERM_LENGTHS {
                let Ok(walk) = allocation::within(0, || data.validate(term_length)) else {
                    continue;
                };
                let end = i64::from(walk.term_offset()) + i64::from(walk.length_in_term());
                assert!(walk.term_offset() >= 0 && walk.length_in_term() >= 0);
                assert!(end <= term_length.into(), "ends at {end} of {term_length}");
                assert_eq!(walk.length_in_term() % 32, 0);
                assert_eq!(walk.length_in_term() == 0, data.is_heartbeat());
                // Only padding may be longer than the datagram.
                assert!(walk.length_in_term() as usize >= datagram.len() || data.is_heartbeat());
            }
        }
        Frame::Setup(setup) => {
            assert!(setup.term_offset.get() <= setup.term_length.get());
            assert!(datagram.starts_with(setup.as_bytes()));
        }
        Frame::Nak(nak) => {
            for term_length in TERM_LENGTHS {
                if nak.check(term_length).is_ok() {
                    let end = nak.term_offset.get().checked_add(nak.length.get());
                    assert!(end.is_some_and(|end| end <= term_length));
                }
            }
            assert!(datagram.starts_with(nak.as_bytes()));
        }
        Frame::StatusMessage(status) => {
            for term_length in TERM_LENGTHS {
                if status.message.check(Some(term_length)).is_ok() {
                    assert!((0..=term_length / 2).contains(&status.message.receiver_window.get()));
                }
            }
            assert_eq!(status.group_tag().is_some(), status.feedback.len() == 8);
            assert!(datagram.starts_with(status.message.as_bytes()));
        }
        Frame::Error(error) => again(datagram, &error),
        Frame::Rttm(rttm) => assert!(datagram.starts_with(rttm.as_bytes())),
        Frame::ResponseSetup(setup) => assert!(datagram.starts_with(setup.as_bytes())),
        Frame::Resolution(resolutions) => entries(datagram, resolutions),
    }
}

fn again(datagram: &[u8], error: &ErrorFrame<'_>) {
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    let header = error.header;
    let written = ErrorFrame::write(
        &mut buffer,
        header.session_id.get(),
        header.stream_id.get(),
        header.receiver_id.get(),
        error.group_tag(),
        header.error_code.get(),
        error.text,
    );
    assert!(written.len() <= datagram.len());
    let Ok(Frame::Error(read)) = Frame::parse(written) else {
        panic!("a written error frame does not parse");
    };
    assert_eq!(
        (read.text, read.group_tag()),
        (error.text, error.group_tag())
    );
    assert_eq!(
        (read.header.session_id, read.header.receiver_id),
        (header.session_id, header.receiver_id)
    );
}

fn entries(datagram: &[u8], resolutions: Resolutions<'_>) {
    let entries: Vec<ResolutionEntry<'_>> = resolutions.map_while(Result::ok).collect();
    // An entry has at least 15 bytes.
    assert!(entries.len() <= datagram.len() / 15);
    for entry in &entries {
        assert!((1..=512).contains(&entry.name.len()));
    }
    let mut buffer = vec![0; datagram.len() + 8];
    let (written, count) = write_resolution(&mut buffer, entries.iter().copied());
    assert_eq!(count, entries.len(), "the capacity suffices");
    if count == 0 {
        return;
    }
    let Ok(Frame::Resolution(read)) = Frame::parse(written) else {
        panic!("a written resolution frame does not parse");
    };
    let read: Result<Vec<_>, _> = read.collect();
    assert_eq!(read.as_ref(), Ok(&entries));
}
