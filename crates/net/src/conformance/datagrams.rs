// SPDX-License-Identifier: Apache-2.0
//! Single datagrams: addresses, peers, order, loss.

use super::{Suite, must, pattern};
use crate::{NetError, ReceiveBatch, SocketSpec, Transmit};

impl Suite<'_> {
    pub(super) fn single_datagrams(&mut self) {
        let mut left = self.open_any();
        let mut right = self.open_far();
        for text in [&b"first"[..], b"second", b"x"] {
            let ping = [Transmit::to(right.local_address(), text)];
            assert_eq!(must(left.send(&ping)), text.len());
            assert_eq!(
                self.collect(&mut *right, 1),
                [(left.local_address(), text.to_vec())]
            );
            let pong = [Transmit::to(left.local_address(), text)];
            assert_eq!(must(right.send(&pong)), text.len());
            assert_eq!(
                self.collect(&mut *left, 1),
                [(right.local_address(), text.to_vec())]
            );
        }
    }

    pub(super) fn empty_batches(&mut self) {
        let mut transport = self.open_any();
        let mut batch = ReceiveBatch::new(2);
        batch.push(transport.local_address(), None, b"old");
        assert_eq!(must(transport.receive(&mut batch)), 0);
        assert!(
            batch.is_empty(),
            "the old contents of the batch are cleared"
        );
        assert_eq!(must(transport.send(&[])), 0);
        let own = transport.local_address();
        assert_eq!(must(transport.send(&[Transmit::to(own, b"")])), 0);
    }

    pub(super) fn missing_destination(&mut self) {
        let mut transport = self.open_any();
        let own = transport.local_address();
        let refused = transport.send(&[Transmit::connected(b"lost")]);
        assert!(
            matches!(refused, Err(NetError::NoDestination { .. })),
            "{refused:?}"
        );
        let batch = [Transmit::to(own, b"kept"), Transmit::connected(b"lost")];
        assert_eq!(
            must(transport.send(&batch)),
            4,
            "the datagrams before the faulty one are accepted"
        );
        assert_eq!(self.collect(&mut *transport, 1), [(own, b"kept".to_vec())]);
    }

    pub(super) fn connected_pair(&mut self) {
        let mut server = self.open_far();
        let mut third = self.open_far();
        let mut client = self.open_to(&*server);
        assert_eq!(client.peer(), Some(server.local_address()));
        let client_address = client.local_address();

        assert_eq!(must(client.send(&[Transmit::connected(b"hello")])), 5);
        assert_eq!(
            must(client.send(&[Transmit::to(server.local_address(), b"again")])),
            5
        );
        let expected = [
            (client_address, b"hello".to_vec()),
            (client_address, b"again".to_vec()),
        ];
        assert_eq!(self.collect(&mut *server, 2), expected);

        assert_eq!(
            must(client.send(&[Transmit::to(third.local_address(), b"aside")])),
            5
        );
        assert_eq!(
            self.collect(&mut *third, 1),
            [(client_address, b"aside".to_vec())]
        );

        must(third.send(&[Transmit::to(client_address, b"stray")]));
        must(server.send(&[Transmit::to(client_address, b"valid")]));
        assert_eq!(
            self.collect(&mut *client, 1),
            [(server.local_address(), b"valid".to_vec())]
        );
    }

    pub(super) fn new_peer(&mut self) {
        let mut first = self.open_far();
        let mut second = self.open_far();
        let mut client = self.open_to(&*first);
        let own = client.local_address();
        must(client.connect(second.local_address()));
        assert_eq!(client.peer(), Some(second.local_address()));
        assert_eq!(client.local_address(), own, "the local address stays");
        must(client.send(&[Transmit::connected(b"to the second")]));
        self.collect(&mut *second, 1);
        must(first.send(&[Transmit::to(own, b"stray")]));
        must(second.send(&[Transmit::to(own, b"valid")]));
        assert_eq!(
            self.collect(&mut *client, 1),
            [(second.local_address(), b"valid".to_vec())]
        );
    }

    pub(super) fn many_destinations(&mut self) {
        let mut sender = self.open_any();
        let mut receivers: Vec<_> = (0..3).map(|_| self.open_far()).collect();
        let payload = pattern(100 * 64);
        let batch: Vec<_> =
            (0..99)
                .map(|index| {
                    let destination = receivers[index % 3].local_address();
                    Transmit::to(destination, &payload[index * 64..][..64])
                        .segmented(if index < 50 { 16 } else { 64 })
                })
                .collect();
        assert_eq!(must(sender.send(&batch)), 99 * 64);
        for (index, receiver) in receivers.iter_mut().enumerate() {
            let mine = batch.iter().skip(index).step_by(3);
            let expected: Vec<_> = mine
                .flat_map(Transmit::datagrams)
                .map(<[u8]>::to_vec)
                .collect();
            let arrived = self.collect(&mut **receiver, expected.len());
            assert!(
                arrived
                    .into_iter()
                    .map(|(_, datagram)| datagram)
                    .eq(expected)
            );
        }
    }

    pub(super) fn small_batches(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        for slots in [1, 2, 40, 100] {
            let payload = pattern(150 * 32);
            let batch: Vec<_> = payload.chunks(32).map(Transmit::connected).collect();
            assert_eq!(must(sender.send(&batch)), payload.len());
            let arrived = self.collect_in_batches(&mut *receiver, 150, slots);
            assert!(
                arrived
                    .iter()
                    .map(|(_, datagram)| &datagram[..])
                    .eq(payload.chunks(32))
            );
        }
    }

    pub(super) fn closed_port(&mut self) {
        let closed = self.open_far();
        let address = closed.local_address();
        let mut sender = self.open_to(&*closed);
        drop(closed);
        let mut batch = ReceiveBatch::new(2);
        let payload = pattern(96);
        for _ in 0..5 {
            let accepted = must(sender.send(&[Transmit::connected(&payload).segmented(32); 3]));
            assert_eq!(accepted % 32, 0);
            (self.settle)();
            assert_eq!(
                must(sender.receive(&mut batch)),
                0,
                "a refused connection is no error"
            );
            must(sender.send(&[Transmit::connected(b"stray")]));
            (self.settle)();
        }
        for _ in 0..20 {
            (self.settle)();
        }
        let mut reopened = must(self.far().network.open(&SocketSpec::bound(address)));
        assert_eq!(
            must(sender.send(&[Transmit::connected(b"valid")])),
            5,
            "an earlier ICMP error costs no datagram"
        );
        assert_eq!(self.collect(&mut *reopened, 1)[0].1, b"valid");
        must(reopened.send(&[Transmit::to(sender.local_address(), b"back")]));
        assert_eq!(self.collect(&mut *sender, 1)[0].1, b"back");
    }

    pub(super) fn overflow(&mut self) {
        let mut receiver = self.open_far();
        let mut sender = self.open_to(&*receiver);
        let payload = pattern(1_024 * 1_408);
        let mut accepted = 0;
        for _ in 0..8 {
            let run = Transmit::connected(&payload).segmented(1_408);
            let bytes = must(sender.send(&[run]));
            assert_eq!(bytes % 1_408, 0, "only whole datagrams are accepted");
            accepted += bytes / 1_408;
        }
        let mut batch = ReceiveBatch::new(16);
        let mut arrived = 0;
        let mut idle = 0;
        while idle < 20 {
            let taken = must(receiver.receive(&mut batch));
            assert!(
                batch
                    .datagrams()
                    .all(|datagram| payload.chunks(1_408).any(|sent| sent == datagram.payload))
            );
            arrived += taken;
            idle = if taken == 0 { idle + 1 } else { 0 };
            (self.settle)();
        }
        assert!(
            arrived > 0 && arrived <= accepted,
            "{arrived} of {accepted} arrived"
        );
        must(sender.send(&[Transmit::connected(b"afterwards")]));
        assert_eq!(self.collect(&mut *receiver, 1)[0].1, b"afterwards");
    }
}
