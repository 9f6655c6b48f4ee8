//! Datagrams that the kernel loses.

use taran_protocol::counter::SystemCounter;

use crate::driven::Driven;
use crate::machines::{Machine, in_own_world};
use crate::stream::{Reader, Writer, carry};

/// Enough for the share of lost datagrams to be within a fifth of the asked one but once in the age of the universe.
const MESSAGES: u64 = 20_000;

const PER_CENT: u32 = 10;

#[test]
fn one_receiver_gets_all_of_a_stream_that_loses_a_tenth_in_both_directions() {
    in_own_world(
        "loss::one_receiver_gets_all_of_a_stream_that_loses_a_tenth_in_both_directions",
        || {
            let (here, there) = (Machine::new("here"), Machine::new("there"));
            here.join("10.9.1.1/24", &there, "10.9.1.2/24", "path");
            here.lose(PER_CENT);
            there.lose(PER_CENT);
            let (sending, receiving) = (Driven::start(&here, &[]), Driven::start(&there, &[]));
            let channel = "aeron:udp?endpoint=10.9.1.2:24325|term-length=1m";
            let mut reader = Reader::new(receiving.client.add_subscription(channel, 10).unwrap());
            let mut writer = Writer::new(sending.client.add_publication(channel, 10).unwrap());
            writer.await_connected();
            carry(&mut writer, &mut [&mut reader], MESSAGES);

            let (seen, lost) = there.seen_and_lost();
            assert!(seen >= MESSAGES, "{seen} datagrams for {MESSAGES} messages");
            let expected = seen * u64::from(PER_CENT) / 100;
            assert!(
                lost.abs_diff(expected) < expected / 5,
                "{lost} of {seen} were lost"
            );
            // Each lost datagram was asked for and sent again, though not each in a frame of its own.
            assert!(receiving.count(SystemCounter::NaksSent) > 0);
            assert!(sending.count(SystemCounter::NaksReceived) > 0);
            assert!(sending.count(SystemCounter::RetransmitsSent) > 0);
            drop((reader, writer));
            sending.stop();
            receiving.stop();
        },
    );
}
