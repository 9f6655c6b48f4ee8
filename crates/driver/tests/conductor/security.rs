// SPDX-License-Identifier: Apache-2.0
//! Transport security of a whole driver: what is plain, warnings, and the age of keys (docs/spec/transport-security.md).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_core::clock::Now;
use taran_core::memory::MemoryStorage;
use taran_driver::DriverKeys;
use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::SecureCounter;
use taran_secure::Secret;
use taran_secure::frame::{Announce, SecureFrame};
use taran_secure::identity::Identity;
use taran_secure::keeper::Entropy;
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::TrustStore;

use crate::fixture::{DriverFixture, error_response};
use crate::memory_network::TestSocket;

const A_WHILE: Duration = Duration::from_millis(300);

/// Counting bytes.
struct Counted(u8);

impl Entropy for Counted {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(5).wrapping_add(3);
            *byte = self.0;
        }
    }
}

/// A driver with an identity that trusts nothing.
fn driver(options: &[(&str, &str)]) -> DriverFixture {
    DriverFixture::built(MemoryStorage::new(), |context| {
        let identity = Identity::from_private::<DefaultProvider>(Secret::new([7; 32]));
        let keys = DriverKeys::new(identity, TrustStore::default(), Box::new(Counted(1)));
        let context = context.option("taran.secure.mode", "all").keys(keys);
        let mut options = options.iter();
        options
            .try_fold(context, |context, (name, value)| {
                Ok::<_, std::convert::Infallible>(context.option(name, value))
            })
            .unwrap()
    })
}

fn count(driver: &DriverFixture, which: SecureCounter) -> i64 {
    let of_type = |meta: &&taran_core::counters::CounterMeta| meta.type_id == which.type_id();
    let counters = driver.counters();
    driver.value(counters.iter().find(of_type).unwrap().id)
}

fn add_destination(driver: &mut DriverFixture, client_id: i64, to: i64, channel: &str) -> String {
    let correlation_id = driver.id();
    let answers = driver.ask(&Command::AddDestination {
        client_id,
        correlation_id,
        registration_id: to,
        channel,
    });
    let error = answers
        .iter()
        .find_map(|message| error_response(message, correlation_id));
    error.map_or_else(String::new, |error| error.text)
}

fn add_source(driver: &mut DriverFixture, client_id: i64, to: i64, channel: &str) -> String {
    let correlation_id = driver.id();
    let answers = driver.ask(&Command::AddReceiveDestination {
        client_id,
        correlation_id,
        registration_id: to,
        channel,
    });
    let error = answers
        .iter()
        .find_map(|message| error_response(message, correlation_id));
    error.map_or_else(String::new, |error| error.text)
}

/// An address of the local end in `taran.secure.allow.plain` says nothing about where a publication sends to.
#[test]
fn plain_destination_needs_an_entry_that_covers_it() {
    let mut driver = driver(&[("taran.secure.allow.plain", "127.0.0.1:40123,0.0.0.0")]);
    let client = driver.client();
    let manual = "aeron:udp?control-mode=manual|taran.secure=false";
    let publication = driver.add_publication(client, manual, 1).unwrap();
    let id = publication.registration_id;
    let allowed = "aeron:udp?endpoint=127.0.0.1:40123";
    assert_eq!(add_destination(&mut driver, client, id, allowed), "");
    let refused = add_destination(&mut driver, client, id, "aeron:udp?endpoint=10.9.9.9:40123");
    for words in [
        "10.9.9.9:40123",
        "taran.secure.allow.plain",
        "taran.secure.mode=all",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn plain_source_needs_an_entry_that_covers_it() {
    let mut driver = driver(&[("taran.secure.allow.plain", "127.0.0.1:40123")]);
    let client = driver.client();
    let manual = "aeron:udp?control-mode=manual|taran.secure=false";
    let (id, _) = driver.add_subscription(client, manual, 1).unwrap();
    let allowed = "aeron:udp?endpoint=127.0.0.1:40123";
    assert_eq!(add_source(&mut driver, client, id, allowed), "");
    let refused = add_source(
        &mut driver,
        client,
        id,
        "aeron:udp?endpoint=127.0.0.1:40124",
    );
    assert!(refused.contains("leads to 127.0.0.1:40124"), "{refused}");
}

/// A name that gets another address leads no plain channel there, unless the new address may be plain, too.
#[test]
fn name_of_a_plain_destination_moves_to_allowed_addresses_only() {
    let mut driver = driver(&[("taran.secure.allow.plain", "127.0.0.1")]);
    let client = driver.client();
    let manual = "aeron:udp?control-mode=manual|taran.secure=false";
    let publication = driver.add_publication(client, manual, 1).unwrap();
    let correlation_id = driver.id();
    driver.send(&Command::AddDestination {
        client_id: client,
        correlation_id,
        registration_id: publication.registration_id,
        channel: "aeron:udp?endpoint=peer:40123",
    });
    driver.settle();
    let no_such_name = Err("no such name".to_owned());
    driver.hosts.answer("peer", &no_such_name);
    driver.settle();
    let spec = SocketSpec::bound(SocketAddr::from(([127, 0, 0, 1], 40_123)));
    let mut peer = TestSocket::open(&driver.network, &spec);
    for (address, arrives) in [([10, 9, 9, 9], false), ([127, 0, 0, 1], true)] {
        let mut waited = 0;
        while !driver.hosts.asked().contains(&"peer".to_owned()) {
            driver.run_for(Duration::from_secs(1));
            waited += 1;
            assert!(waited < 30, "the name is asked for again");
        }
        driver
            .hosts
            .answer("peer", &Ok(vec![IpAddr::from(address)]));
        driver.settle();
        driver.run_for(A_WHILE);
        assert_eq!(!peer.take().is_empty(), arrives, "{address:?}");
    }
    let errors = driver.errors();
    let refused = |(text, _): &(String, i32)| text.contains("leads to 10.9.9.9:40123");
    assert!(errors.iter().any(refused), "{errors:?}");
}

#[test]
fn sealed_datagrams_longer_than_the_path_mtu_are_a_warning_with_the_fitting_mtu() {
    let mut driver = driver(&[]);
    driver.network.set_path_mtu(1_450);
    let client = driver.client();
    let channel = "aeron:udp?endpoint=127.0.0.1:40123";
    driver.add_publication(client, channel, 1).unwrap();
    let errors = driver.errors();
    let (text, _) = errors.first().expect("a warning");
    for words in [
        "path MTU 1450 to 127.0.0.1:40123: use mtu=1376",
        "mtu=1408",
        "1476 bytes (40 of transport security, 28 of IP and UDP)",
        channel,
    ] {
        assert!(text.contains(words), "{text}");
    }
    // The mtu that it names fits.
    let fitting = "aeron:udp?endpoint=127.0.0.1:40124|mtu=1376";
    driver.add_publication(client, fitting, 1).unwrap();
    assert_eq!(driver.errors().len(), 1);
}

/// The operator of the plain end learns that the peer is secured: at the publisher's end, and at the subscriber's.
#[test]
fn secured_peers_of_a_plain_channel_are_recorded() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let channel = "aeron:udp?endpoint=127.0.0.1:40123";
    driver.add_subscription(client, channel, 1).unwrap();
    let secured = SocketAddr::from(([10, 0, 0, 9], 5_000));
    let mut frame = [0; 192];
    frame[0] = 192;
    frame[6..8].copy_from_slice(&0x5452_u16.to_le_bytes());
    let dynamic = "aeron:udp?control=127.0.0.1:40200|control-mode=dynamic";
    driver.add_publication(client, dynamic, 1).unwrap();
    for port in [40_123, 40_200] {
        for _ in 0..3 {
            driver.network.deliver(secured, port, &frame);
            driver.run_for(Duration::from_secs(2));
        }
    }
    let errors = driver.errors();
    for channel in [channel, dynamic] {
        let of_channel = |(text, count): &&(String, i32)| {
            text.contains(&format!(
                "{channel}: 10.0.0.9:5000 sends frames of Taran transport security"
            )) && text.contains("taran.secure.mode=all")
                && *count == 1
        };
        assert_eq!(errors.iter().filter(of_channel).count(), 1, "{errors:?}");
    }
}

/// The sender alone holds the hard age of its keys: the conductor does not run, and draws no other ones.
#[test]
fn sender_seals_nothing_with_a_key_of_a_day() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let mut driver = driver(&[]);
    let client = driver.client();
    let spec = SocketSpec::bound(SocketAddr::from(([127, 0, 0, 1], 40_123)));
    let mut peer = TestSocket::open(&driver.network, &spec);
    let channel = "aeron:udp?endpoint=127.0.0.1:40123";
    driver.add_publication(client, channel, 1).unwrap();
    let mut now = driver.now();
    let mut announced = |driver: &mut DriverFixture, after: Duration| {
        let mut count = 0;
        peer.take();
        now = Now {
            nanos: now.nanos + after.as_nanos() as i64,
            epoch_millis: now.epoch_millis + after.as_millis() as i64,
        };
        for _ in 0..200 {
            now.nanos += 10_000_000;
            now.epoch_millis += 10;
            driver.parts.sender.do_work(now);
        }
        for datagram in peer.take() {
            match SecureFrame::parse(&datagram) {
                Ok(SecureFrame::Announce(announce)) => {
                    assert!(Announce::has_setup(announce));
                    count += 1;
                }
                other => panic!("{other:?} of a sender without receivers"),
            }
        }
        count
    };
    assert!(announced(&mut driver, Duration::ZERO) > 3);
    assert!(announced(&mut driver, 23 * HOUR) > 3);
    let refused = count(&driver, SecureCounter::RefusedSends);
    assert_eq!(announced(&mut driver, HOUR), 0);
    assert!(count(&driver, SecureCounter::RefusedSends) > refused);
}
