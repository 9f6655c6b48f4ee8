// SPDX-License-Identifier: Apache-2.0
//! Two paths between two machines, and broken links.

use crate::machine_driver::{DrivenMachine, wait_until};
use crate::machines::{Machine, in_own_namespaces};
use crate::stream::{Reader, Writer, exchange};

const DESTINATIONS: [&str; 2] = [
    "aeron:udp?endpoint=10.9.1.2:24327",
    "aeron:udp?endpoint=10.9.2.2:24328",
];

const PATHS: [&str; 2] = ["first", "second"];

#[test]
fn stream_over_two_paths_survives_the_loss_of_either() {
    in_own_namespaces(
        "paths::stream_over_two_paths_survives_the_loss_of_either",
        || {
            let (here, there) = (Machine::new("here"), Machine::new("there"));
            here.join("10.9.1.1/24", &there, "10.9.1.2/24", PATHS[0]);
            here.join("10.9.2.1/24", &there, "10.9.2.2/24", PATHS[1]);
            let (sending, receiving) = (
                DrivenMachine::start(&here, &[]),
                DrivenMachine::start(&there, &[]),
            );
            let channel = "aeron:udp?control-mode=manual|term-length=64k";
            let subscription = receiving.client.add_subscription(channel, 10).unwrap();
            let publication = sending.client.add_publication(channel, 10).unwrap();
            for destination in DESTINATIONS {
                subscription.add_destination(destination).unwrap();
                publication.add_destination(destination).unwrap();
            }
            let mut reader = Reader::new(subscription);
            let mut writer = Writer::new(publication);
            writer.await_connected();
            exchange(&mut writer, &mut [&mut reader], 1_000);
            wait_until("both paths exchange the image", || {
                let images = reader.subscription.images();
                images.len() == 1 && images[0].active_transport_count() == 2
            });
            for path in PATHS {
                here.plug(path, false);
                exchange(&mut writer, &mut [&mut reader], 1_000);
                here.plug(path, true);
                // Both paths have to work before the other one is cut.
                wait_until("both paths exchange the image", || {
                    exchange(&mut writer, &mut [&mut reader], 10);
                    reader.subscription.images()[0].active_transport_count() == 2
                });
            }
            assert_eq!(reader.subscription.images().len(), 1, "it is one image");
            drop((reader, writer));
            sending.stop();
            receiving.stop();
        },
    );
}
