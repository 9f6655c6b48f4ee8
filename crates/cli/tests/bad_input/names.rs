//! Host names that nobody knows, or that take their time.

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
use crate::texts::{assert_refused, refusal};

#[test]
fn an_unknown_host() {
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
    assert_refused(
        client.add_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    assert_refused(
        client.add_exclusive_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    assert_refused(
        client.add_subscription(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    let channel = "aeron:udp?endpoint=localhost:40123|interface=nosuch.invalid";
    let says = [channel, "unknown host", "interface", "nosuch.invalid"];
    assert_refused(
        client.add_publication(channel, 10),
        ErrorCode::UnknownHost,
        &says,
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Answers when the test says so.
#[derive(Clone, Debug, Default)]
struct Slow(Arc<Mutex<Questions>>);

#[derive(Debug, Default)]
struct Questions {
    asked: Vec<(u64, String)>,
    answers: VecDeque<(u64, Result<Vec<IpAddr>, String>)>,
}

impl NameResolver for Slow {
    fn start(&mut self, ticket: u64, host: &str) {
        self.0.lock().unwrap().asked.push((ticket, host.to_owned()));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.0.lock().unwrap().answers.pop_front()
    }
}

impl Slow {
    fn answer(&self, answer: Result<Vec<IpAddr>, String>) {
        let mut questions = self.0.lock().unwrap();
        let (ticket, _) = questions.asked.remove(0);
        questions.answers.push_back((ticket, answer));
    }
}

/// A name holds up its own client for five seconds at most. Other clients come and go meanwhile, which takes no time worth
/// mentioning; where it takes that long all the same, the machine is too busy for an answer, and it is tried again.
const ATTEMPTS: usize = 10;

/// All that another client may want.
fn work_meanwhile(directory: &Directory) {
    let client = connect(directory.path());
    let mut subscription = client.add_subscription("aeron:ipc", 10).unwrap();
    let publication = client.add_publication("aeron:ipc", 10).unwrap();
    wait_until("offered", || publication.offer(b"hello").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
}

#[test]
fn a_slow_name_delays_nobody_else() {
    let directory = Directory::new("slow-name");
    let resolver = Slow::default();
    let context = DriverContext::new().aeron_dir(directory.path());
    let driver = MediaDriver::launch(context.resolver(resolver.clone())).unwrap();
    let client = connect(directory.path());
    let channel = "aeron:udp?endpoint=slow.example:0";
    let add = || {
        let pending = client.async_add_subscription(channel, 10).unwrap();
        wait_until("the name is asked for", || {
            !resolver.0.lock().unwrap().asked.is_empty()
        });
        pending
    };
    let was_waiting = (0..ATTEMPTS).any(|_| {
        let mut pending = add();
        work_meanwhile(&directory);
        let is_waiting = pending.poll().is_none();
        resolver.answer(Ok(vec![Ipv4Addr::LOCALHOST.into()]));
        if is_waiting {
            pending.wait().unwrap();
        }
        is_waiting
    });
    assert!(was_waiting);

    let pending = add();
    resolver.answer(Err("no such name".to_owned()));
    let says = [channel, "slow.example", "no such name"];
    assert_refused(pending.wait(), ErrorCode::UnknownHost, &says);
    driver.close().unwrap();
}

/// The same with the system's resolver, which asks a server that is slow: this test.
#[test]
fn a_slow_name_server_delays_nobody_else() {
    let test = "names::a_slow_name_server_delays_nobody_else";
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
            let refused = wait_for("the answer", || {
                // It asks for each kind of address, and each possible meaning of the name.
                received(&server)
                    .into_iter()
                    .for_each(|question| answer(&server, question));
                pending.poll().map(refusal)
            });
            assert_eq!(refused.code, ErrorCode::UnknownHost, "{refused}");
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

/// There is no such name.
fn answer(server: &UdpSocket, (from, mut question): Question) {
    question[2] |= 0x80;
    question[3] = 0x83;
    server.send_to(&question, from).unwrap();
}
