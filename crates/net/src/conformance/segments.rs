// SPDX-License-Identifier: Apache-2.0
//! Datagrams of many lengths, in segments, in parts, and written in place.

use std::net::SocketAddr;

use super::{MAX_POLLS, Suite, must, pattern};
use crate::{NetError, SocketSpec, Transmit, TransmitLayout, TransmitScratch, Transport};

impl Suite<'_> {
    pub(super) fn segmented(&mut self) {
        for (length, segment_size) in [
            (10, 4),
            (4_224, 1_408),
            (5_000, 1_408),
            (66_000, 1_408),
            (16_384, 8_192),
            (96, 1),
        ] {
            let mut receiver = self.open_far();
            let mut sender = self.open_to(&*receiver);
            let segment_size = segment_size.min(sender.capabilities().max_datagram);
            let payload = pattern(length);
            let run = Transmit::connected(&payload).segmented(segment_size);
            assert_eq!(
                must(sender.send(&[run])),
                length,
                "a run of {length} bytes by {segment_size}"
            );
            let arrived = self.collect(&mut *receiver, length.div_ceil(segment_size));
            let expected = payload.chunks(segment_size);
            for ((source, datagram), expected) in arrived.iter().zip(expected) {
                assert_eq!(*source, sender.local_address());
                assert_eq!(
                    datagram, expected,
                    "in a run of {length} bytes by {segment_size}"
                );
            }
        }
    }

    pub(super) fn parts(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let (mut head, mut rest) = ([0; 32], vec![0; 65_504]);
        let nothing = must(receiver.receive_parts(&mut head, &mut rest));
        assert_eq!(nothing, None, "nothing was sent");
        if !receiver.capabilities().receives_parts {
            return;
        }
        let max_datagram = sender.capabilities().max_datagram;
        for length in [1, 32, 33, 4_224.min(max_datagram), max_datagram] {
            let payload = pattern(length);
            must(sender.send(&[Transmit::connected(&payload)]));
            let mut received = None;
            for _ in 0..MAX_POLLS {
                received = must(receiver.receive_parts(&mut head, &mut rest));
                if received.is_some() {
                    break;
                }
                (self.settle)();
            }
            let Some(received) = received else {
                panic!("a datagram of {length} bytes did not arrive in parts");
            };
            assert_eq!(received.source, sender.local_address());
            assert_eq!((received.length, received.stride), (length, length));
            let (first, behind) = payload.split_at(length.min(head.len()));
            assert_eq!(&head[..first.len()], first, "of {length} bytes");
            assert_eq!(&rest[..behind.len()], behind, "of {length} bytes");
        }
        self.segmented_parts(&mut *sender, &mut *receiver);
    }

    /// A batch arrives as a whole if the backend coalesces, else datagram by datagram.
    fn segmented_parts(&mut self, sender: &mut dyn Transport, receiver: &mut dyn Transport) {
        let (mut head, mut rest) = ([0; 32], vec![0; 65_504]);
        let payload = pattern(10_000);
        must(sender.send(&[Transmit::connected(&payload).segmented(1_408)]));
        let mut arrived = Vec::new();
        for _ in 0..MAX_POLLS {
            let Some(received) = must(receiver.receive_parts(&mut head, &mut rest)) else {
                (self.settle)();
                continue;
            };
            assert_eq!(received.stride, received.length.min(1_408));
            assert!(receiver.capabilities().coalesces || received.length <= 1_408);
            let first = received.length.min(head.len());
            arrived.extend_from_slice(&head[..first]);
            arrived.extend_from_slice(&rest[..received.length - first]);
            if arrived.len() >= payload.len() {
                break;
            }
        }
        assert_eq!(arrived, payload);
    }

    pub(super) fn largest_datagrams(&mut self) {
        let far = self.far();
        let spec = SocketSpec {
            receive_buffer: Some(256 * 1_024),
            ..far.any()
        };
        let mut receiver = must(far.network.open(&spec));
        let mut sender = self.open_to(&*receiver);
        let max_datagram = sender.capabilities().max_datagram;
        let aligned = max_datagram / 32 * 32;
        let payload = pattern(2 * max_datagram);
        let largest = &payload[..max_datagram];
        assert_eq!(
            must(sender.send(&[Transmit::connected(largest)])),
            max_datagram
        );
        assert_eq!(self.collect(&mut *receiver, 1)[0].1, largest);
        let mut offered = &payload[..2 * aligned];
        let mut arrived = Vec::new();
        while !offered.is_empty() {
            let accepted = must(sender.send(&[Transmit::connected(offered).segmented(aligned)]));
            assert_eq!(accepted % aligned, 0, "only whole datagrams are accepted");
            offered = &offered[accepted..];
            arrived.extend(self.collect(&mut *receiver, accepted / aligned));
        }
        assert!(
            arrived
                .iter()
                .map(|(_, datagram)| &datagram[..])
                .eq(payload[..2 * aligned].chunks(aligned))
        );
    }

    pub(super) fn too_long_datagram(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let length = sender.capabilities().max_datagram + 1;
        let payload = pattern(length);
        let refused = sender.send(&[Transmit::connected(&payload), Transmit::connected(b"next")]);
        assert!(
            matches!(refused, Err(NetError::TooLong { length: refused, max, .. }) if refused >= length && refused > max),
            "{refused:?}"
        );
        let batch = [
            Transmit::connected(b"before"),
            Transmit::connected(&payload),
        ];
        assert_eq!(
            must(sender.send(&batch)),
            6,
            "the datagrams before the faulty one are accepted"
        );
        must(sender.send(&[Transmit::connected(b"behind")]));
        let arrived = self.collect(&mut *receiver, 2);
        assert_eq!(
            (&arrived[0].1[..], &arrived[1].1[..]),
            (&b"before"[..], &b"behind"[..])
        );
    }

    /// Datagrams that the caller writes into the memory of the backend.
    pub(super) fn written_datagrams(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_any();
        let mut scratch = TransmitScratch::new();
        let max_datagram = sender.capabilities().max_datagram;
        for (length, segment_size) in [
            (0, 0),
            (1, 0),
            (10, 4),
            (5_000, 1_408),
            (100_000, 1_408),
            (96, 1),
            (max_datagram, 0),
        ] {
            let destination = Some(receiver.local_address());
            let payload = pattern(length);
            let whole = Transmit {
                destination,
                payload: &payload,
                segment_size,
            };
            let mut offered = payload.len();
            while offered > 0 {
                let rest = Transmit {
                    payload: &payload[payload.len() - offered..],
                    segment_size: whole.stride(),
                    ..whole
                };
                let plain: Vec<_> = rest.datagrams().collect();
                let mut next = 0;
                let layout = rest.expanded(0);
                let accepted =
                    must(
                        sender.send_with(layout, &mut scratch, &mut |index, memory| {
                            assert_eq!(index, next, "in ascending order, each once");
                            next += 1;
                            memory.copy_from_slice(plain[index]);
                        }),
                    );
                assert!(accepted > 0, "{length} bytes by {segment_size}");
                let datagrams = accepted.div_ceil(rest.stride());
                assert!(next >= datagrams, "accepted datagrams are written");
                let arrived = self.collect(&mut *receiver, datagrams);
                let arrived = arrived.iter().map(|(_, datagram)| &datagram[..]);
                assert!(
                    arrived.eq(plain[..datagrams].iter().copied()),
                    "{length} bytes by {segment_size}"
                );
                offered -= accepted;
            }
        }
        refuse_layouts(&mut *sender, &mut scratch, receiver.local_address());
    }
}

/// Sends layouts that are refused.
fn refuse_layouts(sender: &mut dyn Transport, scratch: &mut TransmitScratch, to: SocketAddr) {
    let max_datagram = sender.capabilities().max_datagram;
    let mut send = |destination, length| {
        let layout = TransmitLayout {
            destination,
            length,
            segment_size: 0,
        };
        sender.send_with(layout, scratch, &mut |_, memory| memory.fill(7))
    };
    for length in [max_datagram + 1, 2 * TransmitScratch::LENGTH] {
        let refused = send(Some(to), length);
        assert!(
            matches!(refused, Err(NetError::TooLong { length: refused, max, .. }) if refused >= length && refused > max),
            "{refused:?}"
        );
        let refused = send(None, 8);
        assert!(
            matches!(refused, Err(NetError::NoDestination { .. })),
            "{refused:?}"
        );
    }
}
