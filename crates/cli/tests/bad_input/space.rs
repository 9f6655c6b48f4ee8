// SPDX-License-Identifier: Apache-2.0
//! A `/dev/shm` that is too small: 64 MiB, the default of containers, and less.

use std::io::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use taran::ErrorCode;
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes, Setup};

use crate::attach::{connect, own_socket_address, wait_until};
use crate::mounts::{in_own_mounts, mount_memory};
use crate::own_address::own_address;
use crate::process::{Driver, run, taran};
use crate::texts::{assert_rejected, assert_says};

fn directory() -> PathBuf {
    PathBuf::from("/dev/shm/driver")
}

fn files(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(files(&path));
        } else {
            names.push(path.display().to_string());
        }
    }
    names
}

#[test]
fn driver_without_storage_space_is_rejected() {
    in_own_mounts("space::driver_without_storage_space_is_rejected", || {
        // Too small for cnc.dat, and just large enough for cnc.dat alone.
        for size in ["8m", "47m"] {
            mount_memory("/dev/shm", &format!("size={size}"));
            let outcome = run(taran(&["driver"]).env("AERON_DIR", directory()));
            outcome.assert_code(1).assert_stderr("ERROR: driver init: ");
            assert_says(
                &outcome.stderr,
                &[
                    "/dev/shm/driver",
                    "needed=49287168",
                    "available=",
                    &format!("is {size}"),
                    "--shm-size=48m",
                    "mount -o remount,size=48m",
                    "aeron.counters.buffer.length=8388608",
                    "aeron.dir",
                ],
            );
            assert!(!outcome.stderr.contains("term"), "{outcome:?}");
            assert!(!directory().exists(), "no files remain");
        }
        // The size recommended by the error text suffices.
        mount_memory("/dev/shm", "size=48m");
        Driver::start(&directory(), &[])
            .stop("TERM")
            .assert_code(15)
            .assert_silent();
        mount_memory("/dev/shm", "size=13m");
        Driver::start(&directory(), &["aeron.counters.buffer.length=1m"])
            .stop("TERM")
            .assert_code(15)
            .assert_silent();
    });
}

#[test]
fn log_without_storage_space_is_rejected() {
    in_own_mounts("space::log_without_storage_space_is_rejected", || {
        mount_memory("/dev/shm", "size=64m");
        let driver = Driver::start(&directory(), &[]);
        let client = connect(&directory());
        let before = files(&directory());
        for (channel, needed, size) in [
            ("aeron:udp?endpoint=localhost:40123", "50335744", "96m"),
            ("aeron:ipc", "201330688", "240m"),
        ] {
            let says = [
                "insufficient usable storage",
                &format!("needed={needed}"),
                "available=",
                "is 64m",
                &format!("--shm-size={size}"),
                &format!("mount -o remount,size={size}"),
                "/dev/shm/driver/publications",
                "term-length",
            ];
            let added = client.add_publication(channel, 10);
            assert_rejected(added, ErrorCode::StorageSpace, &says);
            let added = client.add_exclusive_publication(channel, 10);
            assert_rejected(added, ErrorCode::StorageSpace, &says);
        }
        assert_eq!(files(&directory()), before, "no files remain");
        let errors = run(taran(&["errors"]).env("AERON_DIR", directory()));
        errors.assert_code(0);
        assert_says(
            &errors.stdout,
            &["insufficient usable storage", "--shm-size=96m"],
        );

        // The remedy of the error text helps.
        let channel = "aeron:ipc?term-length=1m";
        let mut subscription = client.add_subscription(channel, 10).unwrap();
        let publication = client.add_publication(channel, 10).unwrap();
        wait_until("connected", || publication.offer(b"fits").is_ok());
        wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

#[test]
fn image_without_storage_space_is_rejected() {
    in_own_mounts("space::image_without_storage_space_is_rejected", || {
        mount_memory("/dev/shm", "size=64m");
        let driver = Driver::start(&directory(), &[]);
        let client = connect(&directory());
        // There is space for the log of the publication, but not for that of the image.
        let channel = "aeron:udp?endpoint=localhost:40123|term-length=4m|sparse=false";
        let subscription = client.add_subscription(channel, 10).unwrap();
        let publication = client.add_publication(channel, 10).unwrap();
        let errors = || client.counters().value(SystemCounter::Errors.id());
        // Each SETUP is a new attempt.
        wait_until("more than one rejection", || errors() > Some(2));
        assert_eq!(
            (subscription.image_count(), publication.is_connected()),
            (0, false)
        );
        let shown = run(taran(&["errors"]).env("AERON_DIR", directory()));
        shown.assert_code(0);
        assert_says(
            &shown.stdout,
            &[
                "insufficient usable storage",
                "needed=12587008",
                "/dev/shm/driver/images",
                "--shm-size=",
                "2 distinct errors",
            ],
        );
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

/// Anyone who can send a datagram can request memory. Requests beyond the available space are rejected, and streams
/// continue.
#[test]
fn setups_beyond_storage_space_are_rejected() {
    in_own_mounts("space::setups_beyond_storage_space_are_rejected", || {
        mount_memory("/dev/shm", "size=64m");
        let driver = Driver::start(&directory(), &[]);
        let client = connect(&directory());
        let endpoint = own_socket_address();
        let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
        let mut subscription = client.add_subscription(&channel, 10).unwrap();
        let publication = client.add_publication(&channel, 10).unwrap();
        wait_until("offered", || publication.offer(b"before").is_ok());
        wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));

        let before = files(&directory());
        let attacker = UdpSocket::bind((own_address(), 0)).unwrap();
        let errors = || client.counters().value(SystemCounter::Errors.id()).unwrap();
        for session in 0..20 {
            let setup = Setup {
                header: Setup::header(0),
                term_offset: 0.into(),
                session_id: (publication.session_id() + 1 + session).into(),
                stream_id: 10.into(),
                initial_term_id: 0.into(),
                active_term_id: 0.into(),
                term_length: (1 << 30).into(),
                mtu: 1_408.into(),
                ttl: 0.into(),
            };
            let before = errors();
            attacker.send_to(setup.as_bytes(), endpoint).unwrap();
            wait_until("rejection", || errors() > before);
        }
        assert_eq!(subscription.image_count(), 1);
        assert_eq!(files(&directory()), before);
        let shown = run(taran(&["errors"]).env("AERON_DIR", directory()));
        // All rejections are one distinct error; two warnings about low space are added, one per directory.
        assert_says(
            &shown.stdout,
            &["20 observations", "needed=3221229568", "3 distinct errors"],
        );
        for number in 0..100_u32 {
            let message = number.to_le_bytes();
            wait_until("offered", || publication.offer(&message).is_ok());
            wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
        }
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

/// Images requested by remote peers leave space for clients.
#[test]
fn images_leave_storage_space_to_clients() {
    in_own_mounts("space::images_leave_storage_space_to_clients", || {
        mount_memory("/dev/shm", "size=256m");
        // No errors except rejections, and no image that ends during the test.
        let options = [
            "aeron.low.file.store.warning.threshold=32m",
            "aeron.image.liveness.timeout=600s",
        ];
        let driver = Driver::start(&directory(), &options);
        let client = connect(&directory());
        let endpoint = own_socket_address();
        let channel = format!("aeron:udp?endpoint={endpoint}|sparse=false");
        let subscription = client.add_subscription(&channel, 10).unwrap();
        let attacker = UdpSocket::bind((own_address(), 0)).unwrap();
        let errors = || client.counters().value(SystemCounter::Errors.id()).unwrap();
        for session in 0..10 {
            let setup = Setup {
                header: Setup::header(0),
                term_offset: 0.into(),
                session_id: session.into(),
                stream_id: 10.into(),
                initial_term_id: 0.into(),
                active_term_id: 0.into(),
                term_length: (16 << 20).into(),
                mtu: 1_408.into(),
                ttl: 0.into(),
            };
            let before = (subscription.image_count(), errors());
            // SETUPs are repeated, as senders do: the first may arrive before the receiver knows the subscription.
            wait_until("an image or an error", || {
                attacker.send_to(setup.as_bytes(), endpoint).unwrap();
                (subscription.image_count(), errors()) != before
            });
            if subscription.image_count() == before.0 {
                continue;
            }
            // Until a frame arrives, an image counts against the limit of its source.
            let heartbeat = DataHeader::heartbeat(0xC0, session, 10, 0, 0);
            let heartbeats = || {
                client
                    .counters()
                    .value(SystemCounter::HeartbeatsReceived.id())
            };
            let before = heartbeats();
            wait_until("a heartbeat", || {
                attacker.send_to(heartbeat.as_bytes(), endpoint).unwrap();
                heartbeats() > before
            });
        }
        // Each image takes 48 MiB of about 208 MiB; a fourth would leave less than an eighth of 256 MiB.
        assert_eq!(subscription.image_count(), 3);
        let shown = run(taran(&["errors"]).env("AERON_DIR", directory()));
        assert_says(
            &shown.stdout,
            &[
                "33554432 bytes are reserved for publications",
                "aeron.low.file.store.warning.threshold",
            ],
        );
        for stream in 0..5 {
            client
                .add_publication("aeron:ipc?term-length=2m", stream)
                .unwrap();
        }
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

/// Fills a file system to the last page.
fn fill(file: &Path) {
    let mut file = std::fs::File::create(file).unwrap();
    for length in [1 << 20, 4_096] {
        let zeros = vec![0; length];
        loop {
            match file.write_all(&zeros) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn streams_wait_for_storage_space_and_continue() {
    in_own_mounts("space::streams_wait_for_storage_space_and_continue", || {
        for (channel, checks) in [
            ("aeron:ipc?term-length=4m", "true"),
            ("aeron:ipc?term-length=4m|sparse=true", "false"),
            ("aeron:udp?endpoint=localhost:40123|term-length=2m", "true"),
            (
                "aeron:udp?endpoint=localhost:40123|term-length=2m|sparse=true",
                "false",
            ),
        ] {
            mount_memory("/dev/shm", "size=80m");
            let options = [format!("aeron.perform.storage.checks={checks}")];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let driver = Driver::start(&directory(), &options);
            let client = connect(&directory());
            let mut subscription = client.add_subscription(channel, 10).unwrap();
            let publication = client.add_publication(channel, 10).unwrap();
            wait_until("connected", || publication.is_connected());
            let filler = Path::new("/dev/shm/filler");
            fill(filler);

            // Publishes and receives until nothing moves for a while, or up to a number of messages.
            let message = [0xAB; 1_000];
            let (mut sent, mut received) = (0_u64, 0_u64);
            let mut flow = |until: u64| {
                let mut moved = Instant::now();
                while moved.elapsed() < Duration::from_millis(1_500) && received < until {
                    if sent < until && publication.offer(&message).is_ok() {
                        sent += 1;
                        moved = Instant::now();
                    }
                    let polled = subscription.poll(|_, _| {}, 100).unwrap() as u64;
                    received += polled;
                    if polled > 0 {
                        moved = Instant::now();
                    }
                }
                (sent, received)
            };
            let (sent, received) = flow(u64::MAX);
            let bytes = received * 1_056;
            assert!(
                bytes > 500_000 && bytes < 5_000_000,
                "{channel}: {sent} {received}"
            );
            assert!(publication.is_connected());
            let shown = run(taran(&["errors"]).env("AERON_DIR", directory()));
            let says = [
                "insufficient usable storage for the next pages",
                "remount,size=",
            ];
            assert_says(&shown.stdout, &says);

            std::fs::remove_file(filler).unwrap();
            // More than three terms.
            assert_eq!(flow(20_000), (20_000, 20_000), "{channel}");
            driver.stop("TERM").assert_code(15).assert_silent();
        }
    });
}
