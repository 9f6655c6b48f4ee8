// SPDX-License-Identifier: Apache-2.0
//! Multicast groups across machines, and machines with several interfaces.

use std::collections::BTreeSet;

use crate::machine_driver::{DrivenMachine, wait_until};
use crate::machines::{Machine, in_own_namespaces};
use crate::stream::{Reader, Writer, exchange};

const GROUP: &str = "aeron:udp?endpoint=224.20.30.39:24326|term-length=64k";

fn sessions(reader: &mut Reader) -> BTreeSet<i32> {
    let images = reader.subscription.images();
    images.iter().map(|image| image.session_id()).collect()
}

/// One machine publishes to the same group on each of its networks; each network receives only its own stream.
#[test]
fn multicast_stream_stays_on_the_interface_of_its_channel() {
    in_own_namespaces(
        "groups::multicast_stream_stays_on_the_interface_of_its_channel",
        || {
            let (middle, left, right) = (
                Machine::new("middle"),
                Machine::new("left"),
                Machine::new("right"),
            );
            middle.join("10.9.1.1/24", &left, "10.9.1.2/24", "left");
            middle.join("10.9.2.1/24", &right, "10.9.2.2/24", "right");
            let sending = DrivenMachine::start(&middle, &[]);
            let receiving = [
                DrivenMachine::start(&left, &[]),
                DrivenMachine::start(&right, &[]),
            ];
            let on = |network: &str| format!("{GROUP}|interface={network}");
            // Selected by network, by address in the network, and by interface name.
            let mut readers: Vec<Reader> = receiving
                .iter()
                .zip([on("10.9.1.0/24"), on("{right}")])
                .map(|(end, channel)| {
                    Reader::new(end.client.add_subscription(&channel, 10).unwrap())
                })
                .collect();
            let mut writers: Vec<Writer> = [on("10.9.1.1/32"), on("10.9.2.0/24")]
                .iter()
                .map(|channel| {
                    let added = sending.client.add_publication(channel, 10);
                    Writer::new(added.unwrap())
                })
                .collect();
            for (writer, reader) in writers.iter_mut().zip(&mut readers) {
                writer.await_connected();
                exchange(writer, &mut [reader], 2_000);
            }
            for (writer, reader) in writers.iter().zip(&mut readers) {
                assert_eq!(
                    sessions(reader),
                    BTreeSet::from([writer.publication.session_id()])
                );
            }
            // A machine on both networks that joins the group on one of them receives only that network's stream.
            let both = on("10.9.2.1");
            let mut inner = Reader::new(sending.client.add_subscription(&both, 11).unwrap());
            let outer = on("10.9.1.0/24");
            let unconnected = receiving[0].client.add_publication(&outer, 11).unwrap();
            let connected = receiving[1]
                .client
                .add_publication(on("10.9.2.0/24"), 11)
                .unwrap();
            wait_until("the one on the network of the group is connected", || {
                connected.is_connected()
            });
            let mut writer = Writer::new(connected);
            exchange(&mut writer, &mut [&mut inner], 2_000);
            assert_eq!(
                sessions(&mut inner),
                BTreeSet::from([writer.publication.session_id()])
            );
            assert!(!unconnected.is_connected());
            drop((readers, writers, inner, writer, unconnected));
            sending.stop();
            receiving.into_iter().for_each(DrivenMachine::stop);
        },
    );
}

/// Three receivers on one network, each with its own losses.
#[test]
fn multicast_with_loss_at_each_receiver_delivers_everything() {
    in_own_namespaces(
        "groups::multicast_with_loss_at_each_receiver_delivers_everything",
        || {
            let switch = Machine::new("switch");
            let names = ["one", "two", "three", "source"];
            let machines = names.map(Machine::new);
            let addresses = ["10.9.3.1/24", "10.9.3.2/24", "10.9.3.3/24", "10.9.3.4/24"];
            let members: Vec<(&Machine, &str)> = machines.iter().zip(addresses).collect();
            switch.switch(&members);
            machines[..3].iter().for_each(|machine| machine.lose(5));
            let mut drivers: Vec<DrivenMachine> = machines
                .iter()
                .map(|machine| DrivenMachine::start(machine, &[]))
                .collect();
            let source = drivers.pop().unwrap();
            // The slowest receiver limits the sender.
            let channel = format!("{GROUP}|interface=10.9.3.0/24|fc=min,g:/3");
            let mut readers: Vec<Reader> = drivers
                .iter()
                .map(|end| Reader::new(end.client.add_subscription(&channel, 10).unwrap()))
                .collect();
            let mut writer = Writer::new(source.client.add_publication(&channel, 10).unwrap());
            writer.await_connected();
            let mut all: Vec<&mut Reader> = readers.iter_mut().collect();
            exchange(&mut writer, &mut all, 5_000);
            for machine in &machines[..3] {
                let (seen, lost) = machine.seen_and_lost();
                let expected = seen / 20;
                assert!(
                    lost.abs_diff(expected) < expected / 2,
                    "{lost} of {seen} were lost"
                );
            }
            drop((readers, writer));
            source.stop();
            drivers.into_iter().for_each(DrivenMachine::stop);
        },
    );
}
