// SPDX-License-Identifier: Apache-2.0
//! Unknown host names and slow name resolution.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use taran::ErrorCode;
use taran_driver::{DriverContext, MediaDriver, NameResolver};

use crate::attach::{connect, wait_for, wait_until};
use crate::mounts::{in_own_mounts, run};
use crate::own_address::own_address;
use crate::own_namespaces::skipped;
use crate::process::{Directory, Driver};
use crate::texts::{assert_rejected, rejection};

#[test]
fn unknown_host_is_rejected() {
    let directory = Directory::new("unknown-host");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let channel = "aeron:udp?endpoint=nosuch.invalid:40123";
    let says = [
        channel,
        "unknown host",
        "endpoint",
        "nosuch.invalid",
        "getent hosts nosuch.invalid",
    ];
    assert_rejected(
        client.add_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    assert_rejected(
        client.add_exclusive_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    assert_rejected(
        client.add_subscription(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    let channel = "aeron:udp?endpoint=localhost:40123|interface=nosuch.invalid";
    let says = [channel, "unknown host", "interface", "nosuch.invalid"];
    assert_rejected(
        client.add_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// A resolver that responds when the test requests it.
#[derive(Clone, Debug, Default)]
struct ControlledResolver(Arc<Mutex<Lookups>>);

#[derive(Debug, Default)]
struct Lookups {
    started: Vec<(u64, String)>,
    results: VecDeque<(u64, Result<Vec<IpAddr>, String>)>,
}

impl NameResolver for ControlledResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        self.0
            .lock()
            .unwrap()
            .started
            .push((ticket, host.to_owned()));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.0.lock().unwrap().results.pop_front()
    }
}

impl ControlledResolver {
    fn complete(&self, result: Result<Vec<IpAddr>, String>) {
        let mut lookups = self.0.lock().unwrap();
        let (ticket, _) = lookups.started.remove(0);
        lookups.results.push_back((ticket, result));
    }
}

/// A slow lookup delays only its own client, for at most five seconds. The work of another client normally takes far
/// less. On a very busy machine the lookup may time out first; then the test tries again.
const ATTEMPTS: usize = 10;

/// Does everything that another client may need.
fn work_meanwhile(directory: &Directory) {
    let client = connect(directory.path());
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    let publication = client.add_publication("aeron:ipc", 10).unwrap();
    wait_until("offered", || publication.offer(b"hello").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
}

#[test]
fn slow_lookup_delays_no_other_client() {
    let directory = Directory::new("slow-name");
    let resolver = ControlledResolver::default();
    let context = DriverContext::new().aeron_dir(directory.path());
    let driver = MediaDriver::launch(context.resolver(resolver.clone())).unwrap();
    let client = connect(directory.path());
    let channel = "aeron:udp?endpoint=slow.example:0";
    let add = || {
        let pending = client.async_add_subscription(channel, 10).unwrap();
        wait_until("the lookup", || {
            !resolver.0.lock().unwrap().started.is_empty()
        });
        pending
    };
    let was_waiting = (0..ATTEMPTS).any(|_| {
        let mut pending = add();
        work_meanwhile(&directory);
        let is_waiting = pending.poll().is_none();
        resolver.complete(Ok(vec![Ipv4Addr::LOCALHOST.into()]));
        if is_waiting {
            pending.wait().unwrap();
        }
        is_waiting
    });
    assert!(was_waiting);

    let pending = add();
    resolver.complete(Err("no such name".to_owned()));
    let says = [channel, "slow.example", "no such name"];
    assert_rejected(pending.wait(), ErrorCode::UnknownHost, &says);
    driver.close().unwrap();
}

/// The same with the system's resolver and a slow name server, which is the test.
#[test]
fn slow_name_server_delays_no_other_client() {
    let test = "names::slow_name_server_delays_no_other_client";
    in_own_mounts(test, || {
        let address = own_address();
        let Ok(server) = UdpSocket::bind((address, 53)) else {
            skipped(test, "port 53 cannot be had");
            return;
        };
        server.set_nonblocking(true).unwrap();
        let directory = Directory::new("slow-server");
        let text = format!("nameserver {address}\noptions timeout:30 attempts:1\n");
        let resolver = Directory::new("slow-server-configuration");
        let resolver = resolver.file("resolv.conf", &text).display().to_string();
        run(&["mount", "--bind", &resolver, "/etc/resolv.conf"]);
        let driver = Driver::start(directory.path(), &[]);
        let client = connect(directory.path());
        let was_waiting = (0..ATTEMPTS).any(|attempt| {
            let channel = format!("aeron:udp?endpoint=slow{attempt}.example:40123");
            let mut pending = client.async_add_subscription(&channel, 10).unwrap();
            let question = wait_for("a question", || received(&server));
            work_meanwhile(&directory);
            if pending.poll().is_some() {
                return false;
            }
            answer(&server, question);
            let rejected = wait_for("the answer", || {
                // The resolver asks for each address family and each search domain.
                received(&server)
                    .into_iter()
                    .for_each(|question| answer(&server, question));
                pending.poll().map(rejection)
            });
            assert_eq!(rejected.code, ErrorCode::UnknownHost, "{rejected}");
            true
        });
        assert!(was_waiting);
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

type Question = (SocketAddr, Vec<u8>);

fn received(server: &UdpSocket) -> Option<Question> {
    let mut buffer = [0; 512];
    let (length, from) = server.recv_from(&mut buffer).ok()?;
    Some((from, buffer[..length].to_vec()))
}

/// Responds that the name does not exist.
fn answer(server: &UdpSocket, (from, mut question): Question) {
    question[2] |= 0x80;
    question[3] = 0x83;
    server.send_to(&question, from).unwrap();
}
