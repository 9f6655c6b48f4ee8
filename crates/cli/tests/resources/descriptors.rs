// SPDX-License-Identifier: Apache-2.0
//! A driver with a low limit on descriptors (`ulimit -n`).

use std::net::SocketAddr;

use taran::{Client, CommandError, ErrorCode, Publication, Subscription};

use crate::attach::{connect, own_socket_address, wait_for, wait_until};
use crate::process::{Directory, Driver};

/// Enough for the driver and a few streams.
const DESCRIPTORS: u32 = 40;

/// Starts a driver with this limit, through a shell.
fn driver_with(descriptors: u32, directory: &Directory) -> Driver {
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -n {descriptors} && exec \"$0\" driver");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_taran")])
        .env("AERON_DIR", directory.path())
        .env("AERON_TERM_BUFFER_LENGTH", "64k");
    Driver::start_with(&mut command, directory.path())
}

fn add(client: &Client, endpoint: impl Into<SocketAddr>) -> Result<Publication, CommandError> {
    client.add_publication(format!("aeron:udp?endpoint={}", endpoint.into()), 10)
}

fn carry(publication: &Publication, subscription: &mut Subscription, from: u32) {
    for number in from..from + 100 {
        let message = number.to_le_bytes();
        wait_until("offered", || publication.offer(&message).is_ok());
        wait_until("received", || {
            subscription.poll(|received, _| assert_eq!(received, message), 1) == Ok(1)
        });
    }
}

#[test]
fn driver_out_of_descriptors_rejects_commands_and_recovers() {
    let directory = Directory::new("descriptors");
    let driver = driver_with(DESCRIPTORS, &directory);
    let client = connect(directory.path());
    let endpoint = own_socket_address();
    let channel = format!("aeron:udp?endpoint={endpoint}");
    let mut subscription = client.add_subscription(&channel, 10).unwrap();
    let publication = client.add_publication(&channel, 10).unwrap();
    carry(&publication, &mut subscription, 0);

    let (mut others, mut endpoints) = (Vec::new(), Vec::new());
    let refused = loop {
        let endpoint = own_socket_address();
        match add(&client, endpoint) {
            Ok(added) => {
                others.push(added);
                endpoints.push(endpoint);
            }
            Err(refused) => break refused,
        }
        assert!(others.len() < DESCRIPTORS as usize, "there is no limit");
    };
    assert!(
        others.len() > 3,
        "{} publications, then {refused}",
        others.len()
    );
    let says_so = |refused: &CommandError| match refused {
        CommandError::Registration(error) => {
            assert_eq!(error.code, ErrorCode::GenericError, "{error}");
            let text = error.to_string();
            assert!(text.contains("Too many open files"), "{text}");
        }
        other => panic!("{other}"),
    };
    says_so(&refused);
    let refused =
        client.add_subscription(format!("aeron:udp?endpoint={}", own_socket_address()), 10);
    says_so(&refused.err().unwrap());
    // No file can be opened either.
    says_so(&client.add_publication("aeron:ipc", 10).err().unwrap());
    carry(&publication, &mut subscription, 100);

    // Descriptors of closed publications become available once the agents have released them.
    others.clear();
    for endpoint in endpoints {
        others.push(wait_for("a descriptor", || add(&client, endpoint).ok()));
    }
    carry(&publication, &mut subscription, 200);
    driver.stop("TERM").assert_code(15).assert_silent();
}
