// SPDX-License-Identifier: Apache-2.0
//! Datagrams dropped by the kernel.

use taran_protocol::counter::SystemCounter;

use crate::machine_driver::DrivenMachine;
use crate::machines::{Machine, in_own_namespaces};
use crate::stream::{Reader, Writer, exchange};

/// Enough messages that the measured loss is practically always within a fifth of the configured one.
const MESSAGES: u64 = 20_000;

const LOSS_PERCENT: u32 = 10;

#[test]
fn unicast_with_loss_in_both_directions_delivers_everything() {
    in_own_namespaces(
        "loss::unicast_with_loss_in_both_directions_delivers_everything",
        || {
            let (here, there) = (Machine::new("here"), Machine::new("there"));
            here.join("10.9.1.1/24", &there, "10.9.1.2/24", "path");
            here.lose(LOSS_PERCENT);
            there.lose(LOSS_PERCENT);
            let (sending, receiving) = (
                DrivenMachine::start(&here, &[]),
                DrivenMachine::start(&there, &[]),
            );
            let channel = "aeron:udp?endpoint=10.9.1.2:24325|term-length=1m";
            let mut reader = Reader::new(receiving.client.add_subscription(channel, 10).unwrap());
            let mut writer = Writer::new(sending.client.add_publication(channel, 10).unwrap());
            writer.await_connected();
            exchange(&mut writer, &mut [&mut reader], MESSAGES);

            let (seen, lost) = there.seen_and_lost();
            assert!(seen >= MESSAGES, "{seen} datagrams for {MESSAGES} messages");
            let expected = seen * u64::from(LOSS_PERCENT) / 100;
            assert!(
                lost.abs_diff(expected) < expected / 5,
                "{lost} of {seen} were lost"
            );
            // Lost datagrams are requested by NAKs and retransmitted; one NAK may cover several.
            assert!(receiving.count(SystemCounter::NaksSent) > 0);
            assert!(sending.count(SystemCounter::NaksReceived) > 0);
            assert!(sending.count(SystemCounter::RetransmitsSent) > 0);
            drop((reader, writer));
            sending.stop();
            receiving.stop();
        },
    );
}
