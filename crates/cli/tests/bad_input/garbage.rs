// SPDX-License-Identifier: Apache-2.0
//! Malformed datagrams: truncated, of other versions and types, with invalid lengths, offsets and fields.

use taran_protocol::frame::{
    DataHeader, ERROR_FRAME_LENGTH_MAX, ErrorFrame, FrameHeader, FrameType, IntoBytes, Nak,
    ResponseSetup, Rttm, Setup, StatusMessage,
};

/// The stream that the datagrams claim to belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) initial_term_id: i32,
    pub(crate) term_length: i32,
}

const TYPES: [u16; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 11];
const UNKNOWN_TYPES: [u16; 9] = [8, 9, 10, 12, 0x7f, 0xff, 0x100, 0x8001, 0xffff];

impl Stream {
    /// Returns datagrams that every socket has to reject.
    pub(crate) fn invalid_anywhere(&self) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        all.extend((1..32).map(|length| vec![0; length]));
        all.extend((1..100).map(|length| vec![0xff; length]));
        for good in self.one_of_each() {
            all.extend((0..good.len().min(31)).map(|length| good[..length].to_vec()));
            for version in [1, 2, 0x7f, 0xff] {
                all.push(changed(&good, 4, &[version]));
            }
            for unknown in UNKNOWN_TYPES {
                all.push(changed(&good, 6, &unknown.to_le_bytes()));
            }
            for length in [-1, -32, i32::MIN] {
                all.push(changed(&good, 0, &length.to_le_bytes()));
            }
        }
        for kind in TYPES {
            // Only a frame header.
            all.push(FrameHeader::new(8, 0, FrameType(kind)).as_bytes().to_vec());
            all.push(
                FrameHeader::new(0, 0xff, FrameType(kind))
                    .as_bytes()
                    .to_vec(),
            );
        }
        for good in self.control() {
            all.extend((32..good.len()).map(|length| good[..length].to_vec()));
            let length = good.len() as i32;
            for claimed in [length + 1, length + 32, 65_536, i32::MAX] {
                all.push(changed(&good, 0, &claimed.to_le_bytes()));
            }
        }
        for length in [33, 48, 63, 65, 1_000, 1_377] {
            let mut odd = self.data(0, &[64]);
            odd.resize(length, 0);
            all.push(odd);
        }
        all.extend(self.setups());
        let error = self.error();
        for length in [-1, 1_024, 100, i32::MAX, i32::MIN] {
            all.push(changed(&error, 36, &i32::to_le_bytes(length)));
        }
        all
    }

    /// Returns data frames that do not fit the log of the stream.
    pub(crate) fn data_garbage(&self) -> Vec<Vec<u8>> {
        let good = self.data(0, &[64]);
        let mut all = Vec::new();
        for offset in [1, 8, 31, 33, -1, -32, i32::MIN, i32::MAX, self.term_length] {
            all.push(changed(&good, 8, &offset.to_le_bytes()));
            // A heartbeat at the same offset.
            let at = changed(&good, 8, &offset.to_le_bytes());
            all.push(changed(&at[..32], 0, &[0; 4]));
        }
        // Beyond the end of the term, and inconsistent lengths.
        all.push(self.data(self.term_length - 32, &[64]));
        for length in [1, 31, 33, 65, 96, 65_536, self.term_length + 32, i32::MAX] {
            let mut lying = changed(&good, 0, &length.to_le_bytes());
            if length == 33 {
                lying.truncate(32);
            }
            all.push(lying);
        }
        // Truncated, with trailing bytes, and with second frames that are not contiguous.
        let two = self.data(0, &[64, 64]);
        all.push(two[..96].to_vec());
        all.push([&good[..], &[0; 32]].concat());
        for (at, value) in [
            (64, 0),
            (64, -64),
            (64, 31),
            (64, 96),
            (64, i32::MAX),
            (72, 0),
            (72, 65),
        ] {
            all.push(changed(&two, at, &i32::to_le_bytes(value)));
        }
        all.push(changed(&two, 64 + 6, &5_u16.to_le_bytes()));
        all
    }

    /// Returns invalid status messages and NAKs.
    pub(crate) fn feedback_garbage(&self) -> Vec<Vec<u8>> {
        let status = self.status(0, 4_096, 0).as_bytes().to_vec();
        let nak = self.nak(0, 64).as_bytes().to_vec();
        let bad_offsets = [
            1,
            33,
            -32,
            -1,
            i32::MIN,
            self.term_length,
            self.term_length + 32,
            i32::MAX,
        ];
        let mut all = Vec::new();
        for offset in bad_offsets {
            all.push(changed(&status, 20, &offset.to_le_bytes()));
            all.push(changed(&nak, 20, &offset.to_le_bytes()));
        }
        for window in [-1, i32::MIN, self.term_length / 2 + 1, i32::MAX] {
            all.push(changed(&status, 24, &window.to_le_bytes()));
        }
        for length in [-1, i32::MIN, self.term_length + 1, i32::MAX] {
            all.push(changed(&nak, 24, &length.to_le_bytes()));
        }
        all.push(self.nak(self.term_length - 32, 64).as_bytes().to_vec());
        all
    }

    /// Returns the number of datagrams of [`feedback_garbage`](Self::feedback_garbage) that are complete NAKs with an
    /// invalid range.
    pub(crate) fn bad_naks(&self) -> usize {
        let whole = size_of::<Nak>();
        let kind = self.nak(0, 64).as_bytes()[6..8].to_vec();
        let garbage = self.feedback_garbage();
        let naks = garbage
            .iter()
            .filter(|it| it.len() == whole && it[6..8] == kind);
        naks.count()
    }

    /// Returns a valid status message.
    pub(crate) fn status(&self, offset: i32, window: i32, flags: u8) -> StatusMessage {
        StatusMessage {
            header: StatusMessage::header(flags),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            consumption_term_id: self.initial_term_id.into(),
            consumption_term_offset: offset.into(),
            receiver_window: window.into(),
            receiver_id: 4_711.into(),
        }
    }

    fn nak(&self, offset: i32, length: i32) -> Nak {
        Nak {
            header: Nak::header(),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            term_id: self.initial_term_id.into(),
            term_offset: offset.into(),
            length: length.into(),
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            header: Setup::header(0),
            term_offset: 0.into(),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            initial_term_id: self.initial_term_id.into(),
            active_term_id: self.initial_term_id.into(),
            term_length: self.term_length.into(),
            mtu: 1_408.into(),
            ttl: 0.into(),
        }
    }

    /// Returns invalid SETUPs, for the existing session and for another one.
    fn setups(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for session_id in [self.session_id, self.session_id ^ 1] {
            let good = Setup {
                session_id: session_id.into(),
                ..self.setup()
            };
            let good = good.as_bytes();
            let mut with = |at: usize, values: &[i32]| {
                all.extend(
                    values
                        .iter()
                        .map(|value| changed(good, at, &value.to_le_bytes())),
                );
            };
            with(8, &[-32, -1, 1, 33, i32::MIN, i32::MAX, self.term_length]);
            with(
                28,
                &[
                    0,
                    -1,
                    1,
                    32_768,
                    65_535,
                    65_537,
                    100_000,
                    i32::MIN,
                    i32::MAX,
                ],
            );
            with(
                32,
                &[0, -32, 1, 31, 33, 1_400, 65_505, 65_536, i32::MIN, i32::MAX],
            );
        }
        all
    }

    /// Returns SETUPs whose active term precedes the initial one. Only the receive side can detect this.
    pub(crate) fn setups_before_the_start(&self) -> Vec<Vec<u8>> {
        [1, 2, i32::MAX]
            .into_iter()
            .map(|back| {
                let setup = Setup {
                    active_term_id: self.initial_term_id.wrapping_sub(back).into(),
                    ..self.setup()
                };
                setup.as_bytes().to_vec()
            })
            .collect()
    }

    fn error(&self) -> Vec<u8> {
        let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
        let (session_id, stream_id) = (self.session_id, self.stream_id);
        ErrorFrame::write(&mut buffer, session_id, stream_id, 4_711, None, 13, b"no").to_vec()
    }

    /// Returns a datagram with frames of these lengths.
    fn data(&self, offset: i32, lengths: &[i32]) -> Vec<u8> {
        let mut datagram = Vec::new();
        for length in lengths {
            let offset = offset + datagram.len() as i32;
            let mut header = DataHeader::heartbeat(
                DataHeader::UNFRAGMENTED,
                self.session_id,
                self.stream_id,
                self.initial_term_id,
                offset,
            );
            header.header.frame_length = (*length).into();
            let end = datagram.len() + *length as usize;
            datagram.extend(header.as_bytes());
            datagram.resize(end, 0x55);
        }
        datagram
    }

    /// Returns well-formed frames of all types except data.
    fn control(&self) -> Vec<Vec<u8>> {
        let (session_id, stream_id) = (self.session_id.into(), self.stream_id.into());
        let rttm = Rttm {
            header: Rttm::header(0),
            session_id,
            stream_id,
            echo_timestamp: 1.into(),
            reception_delta: 0.into(),
            receiver_id: 0.into(),
        };
        let response = ResponseSetup {
            header: ResponseSetup::header(),
            session_id,
            stream_id,
            response_session_id: 7.into(),
        };
        vec![
            self.setup().as_bytes().to_vec(),
            self.nak(0, 64).as_bytes().to_vec(),
            self.status(0, 4_096, 0).as_bytes().to_vec(),
            self.error(),
            rttm.as_bytes().to_vec(),
            response.as_bytes().to_vec(),
        ]
    }

    fn one_of_each(&self) -> Vec<Vec<u8>> {
        let mut all = self.control();
        all.push(self.data(0, &[64]));
        all
    }
}

/// Returns a copy of the datagram with other bytes at an offset.
fn changed(datagram: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = datagram.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}
