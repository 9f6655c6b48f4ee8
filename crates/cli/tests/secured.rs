// SPDX-License-Identifier: Apache-2.0
//! Drivers with transport security over real sockets, in every threading mode, and key files that change.

#![cfg(feature = "secure")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "secured/cluster.rs"]
mod cluster;
#[path = "secured/floods.rs"]
mod floods;
#[path = "shared/own_address.rs"]
mod own_address;
#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "command/process.rs"]
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use own_address::own_address;
use taran::{Client, Publication, Subscription};
use taran_archive::{Archive, ArchiveConfig};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveClient, ArchiveContext, ReplayParams, ReplicationParams};
use taran_core::counters::CountersReader;
use taran_driver::{DriverContext, KeyDirectory, MediaDriver};
use taran_protocol::counter::{SecureCounter, type_id};
use taran_protocol::option::{OptionSet, Source, ThreadingMode};
use taran_secure::Secret;
use taran_secure::identity::{Identity, public_key_text};
use taran_secure::provider::DefaultProvider;

const MESSAGES: u64 = 5_000;
const TIMEOUT: Duration = Duration::from_secs(120);

/// Directory with the keys of a driver, removed on drop.
struct Keys {
    path: PathBuf,
    line: String,
}

impl Keys {
    fn new(name: &str, number: u8) -> Self {
        let unique = format!("taran-keys-{name}-{number}-{}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        // What a killed run left is replaced.
        let _ = fs::remove_dir_all(&path);
        let directory = KeyDirectory::new(path.clone());
        directory.create().unwrap();
        let identity = Identity::from_private::<DefaultProvider>(Secret::new([number; 32]));
        let text = identity.to_text::<DefaultProvider>();
        directory
            .write(KeyDirectory::IDENTITY, &text, 0o600, true)
            .unwrap();
        let line = public_key_text::<DefaultProvider>(identity.public());
        Self { path, line }
    }

    /// Replaces the trust file: keys of these drivers are trusted.
    fn trust(&self, others: &[&Keys]) {
        let lines = others.iter().enumerate();
        let text: String = lines
            .map(|(index, other)| format!("{} peer{index} publish=* subscribe=*\n", other.line))
            .collect();
        KeyDirectory::new(self.path.clone())
            .write(KeyDirectory::TRUSTED, &text, 0o644, true)
            .unwrap();
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A driver that secures all channels, and a client.
struct Host {
    client: Client,
    driver: MediaDriver,
}

impl Host {
    fn context(keys: &Keys, mode: ThreadingMode) -> DriverContext {
        DriverContext::new()
            .threading_mode(mode)
            .option("taran.secure.mode", "all")
            .option("taran.secure.keys.dir", keys.path.display())
    }

    fn start(keys: &Keys, mode: ThreadingMode) -> Self {
        Self::of(Self::context(keys, mode))
    }

    fn of(context: DriverContext) -> Self {
        let driver = MediaDriver::launch_embedded(context).unwrap();
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .connect()
            .unwrap();
        Self { client, driver }
    }

    fn count(&self, which: SecureCounter) -> i64 {
        count(self.driver.counters(), which)
    }
}

fn count(counters: &CountersReader, which: SecureCounter) -> i64 {
    let mut value = None;
    counters.for_each(|counter| {
        if counter.type_id == which.type_id() {
            value = counters.value(counter.id);
        }
    });
    value.unwrap()
}

/// Sends numbered messages and receives them in order.
fn exchange(publication: &Publication, subscription: &mut Subscription) {
    exchange_with(publication, subscription, &mut || {
        thread::yield_now();
        true
    });
}

/// Sends numbered messages and receives them in order. `idle` runs while there is nothing to do.
fn exchange_with(
    publication: &Publication,
    subscription: &mut Subscription,
    idle: &mut dyn FnMut() -> bool,
) {
    let deadline = Instant::now() + TIMEOUT;
    let (mut sent, mut received) = (0_u64, 0_u64);
    let mut message = [0; 900];
    while received < MESSAGES {
        assert!(Instant::now() < deadline, "{received} of {sent} arrived");
        while sent < MESSAGES {
            message[..8].copy_from_slice(&sent.to_le_bytes());
            if publication.offer(&message).is_err() {
                break;
            }
            sent += 1;
        }
        let take = |message: &[u8], _: &taran::Header<'_>| {
            assert_eq!(message[..8], received.to_le_bytes());
            received += 1;
        };
        if subscription.poll(take, 64).unwrap() == 0 {
            idle();
        }
    }
}

fn await_condition(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

#[test]
fn drivers_of_every_threading_mode_exchange_sealed_streams() {
    let keys = [1, 2].map(|number| Keys::new("modes", number));
    keys[0].trust(&[&keys[1]]);
    keys[1].trust(&[&keys[0]]);
    for mode in [
        ThreadingMode::Dedicated,
        ThreadingMode::SharedNetwork,
        ThreadingMode::Shared,
    ] {
        let [near, far] = [0, 1].map(|index| Host::start(&keys[index], mode));
        let channel = format!("aeron:udp?endpoint={}:40123", own_address());
        let mut subscription = far.client.add_subscription(&channel, 1).unwrap();
        let publication = near.client.add_publication(&channel, 1).unwrap();
        exchange(&publication, &mut subscription);
        let plain = i64::try_from(MESSAGES * 900).unwrap();
        assert!(near.count(SecureCounter::BytesSealed) >= plain, "{mode:?}");
        assert!(far.count(SecureCounter::BytesOpened) >= plain, "{mode:?}");
        for host in [&near, &far] {
            assert_eq!(host.count(SecureCounter::PlainRefused), 0, "{mode:?}");
            assert_eq!(host.count(SecureCounter::OutOfBounds), 0, "{mode:?}");
        }
    }
}

#[test]
fn invoked_drivers_exchange_sealed_streams() {
    let keys = [6, 7].map(|number| Keys::new("invoked", number));
    keys[0].trust(&[&keys[1]]);
    keys[1].trust(&[&keys[0]]);
    let drivers = [0, 1].map(|index| {
        let context = Host::context(&keys[index], ThreadingMode::Invoker);
        Arc::new(Mutex::new(MediaDriver::launch_embedded(context).unwrap()))
    });
    let [near, far] = [0, 1].map(|index: usize| {
        let driver = Arc::clone(&drivers[index]);
        let directory = driver.lock().unwrap().aeron_dir().to_path_buf();
        Client::builder()
            .aeron_dir(directory)
            .invoker(true)
            .driver_invoker(move || driver.lock().unwrap().invoke())
            .connect()
            .unwrap()
    });
    let channel = format!("aeron:udp?endpoint={}:40123", own_address());
    let mut subscription = far.add_subscription(&channel, 1).unwrap();
    let publication = near.add_publication(&channel, 1).unwrap();
    exchange_with(&publication, &mut subscription, &mut || {
        near.invoke();
        far.invoke();
        let work = drivers.iter().map(|driver| driver.lock().unwrap().invoke());
        work.sum::<usize>() > 0
    });
    let counters = drivers[0].lock().unwrap().counters().clone();
    assert!(count(&counters, SecureCounter::BytesSealed) >= i64::try_from(MESSAGES * 900).unwrap());
}

#[test]
fn response_channels_and_names_are_sealed_over_sockets() {
    let keys = [8, 9].map(|number| Keys::new("responses", number));
    keys[0].trust(&[&keys[1]]);
    keys[1].trust(&[&keys[0]]);
    let own = own_address();
    let [server, requester] = [0, 1].map(|index: usize| {
        let context = Host::context(&keys[index], ThreadingMode::Shared)
            .option("aeron.driver.resolver.name", format!("driver{index}"))
            .option(
                "aeron.driver.resolver.interface",
                format!("{own}:{}", 18_050 + index),
            )
            .option(
                "aeron.driver.resolver.bootstrap.neighbor",
                format!("{own}:18050"),
            );
        Host::of(context)
    });
    // The server's name leads to it only once the drivers have links for name resolution.
    await_condition("the neighbour is known", || {
        requester
            .driver
            .counters()
            .find(|counter| counter.type_id == type_id::RESOLVER_CACHE_ENTRIES)
            .and_then(|counter| requester.driver.counters().value(counter.id))
            == Some(1)
    });
    let mut requests = server
        .client
        .add_subscription(format!("aeron:udp?endpoint={own}:40200"), 1)
        .unwrap();
    let answers = format!("aeron:udp?control-mode=response|control={own}:40201");
    let mut responses = requester.client.add_subscription(&answers, 2).unwrap();
    let channel = format!(
        "aeron:udp?endpoint=driver0:40200|response-correlation-id={}",
        responses.registration_id()
    );
    let asking = requester.client.add_publication(&channel, 1).unwrap();
    let mut image = None;
    await_condition("the requests arrive", || {
        let _ = asking.offer(b"request");
        image = requests
            .images()
            .first()
            .map(|image| image.correlation_id());
        requests.poll(|_, _| (), 16).unwrap() > 0
    });
    let answers = format!("{answers}|response-correlation-id={}", image.unwrap());
    let answering = server.client.add_publication(&answers, 2).unwrap();
    exchange(&answering, &mut responses);
    for host in [&server, &requester] {
        assert_eq!(host.count(SecureCounter::PlainRefused), 0);
        assert_eq!(host.count(SecureCounter::FailedOpens), 0);
    }
}

/// Starts an archive at a driver, in a directory of its own.
fn archive_at(host: &Host, directory: &Path, control: &str) -> Archive {
    let mut options = OptionSet::archive();
    let driver = host.driver.aeron_dir().display().to_string();
    let directory = directory.display().to_string();
    let replication = format!("aeron:udp?endpoint={}:0", own_address());
    let values = [
        ("aeron.dir", driver.as_str()),
        ("aeron.archive.dir", directory.as_str()),
        ("aeron.archive.control.channel", control),
        ("aeron.archive.replication.channel", replication.as_str()),
        ("aeron.archive.segment.file.length", "64k"),
        ("aeron.archive.low.storage.space.threshold", "1m"),
        ("aeron.archive.threading.mode", "SHARED"),
    ];
    options.apply(&Source::Code, values).unwrap();
    let config = ArchiveConfig::new(&options).unwrap();
    Archive::builder(config).launch().unwrap()
}

/// Connects to an archive over UDP.
fn connect_to(control: &str, client: &Client) -> ArchiveClient {
    ArchiveContext::new()
        .control_channel(control)
        .response_channel(format!("aeron:udp?endpoint={}:0", own_address()))
        .message_timeout(Duration::from_secs(60))
        .connect(client)
        .unwrap()
}

#[test]
fn archives_control_record_replay_and_replicate_over_secured_channels() {
    let keys = [10, 11].map(|number| Keys::new("archive", number));
    keys[0].trust(&[&keys[1]]);
    keys[1].trust(&[&keys[0]]);
    let [near, far] = [0, 1].map(|index| Host::start(&keys[index], ThreadingMode::Shared));
    let own = own_address();
    let controls = [40_300, 40_301].map(|port| format!("aeron:udp?endpoint={own}:{port}"));
    let directories = ["near", "far"].map(|name| keys[0].path.join(name));
    let archives = [
        archive_at(&near, &directories[0], &controls[0]),
        archive_at(&far, &directories[1], &controls[1]),
    ];
    // Control and recording: the archive is at the other driver, and records a stream of this one.
    let mut archive = connect_to(&controls[1], &near.client);
    let channel = format!("aeron:udp?endpoint={own}:40302|term-length=64k");
    archive
        .start_recording(&channel, 7, SourceLocation::REMOTE, false)
        .unwrap();
    let mut publication = near.client.add_exclusive_publication(&channel, 7).unwrap();
    for number in 0..500_u64 {
        await_condition("an offer", || {
            publication.offer(&number.to_le_bytes()).is_ok()
        });
    }
    let started = archive.wait_for_signal(|_| true).unwrap();
    let (id, end) = (started.recording_id, publication.position());
    await_condition("the recorded position", || {
        archive.max_recorded_position(id).unwrap() >= end
    });
    // Replay, back to this driver.
    let replay = format!("aeron:udp?endpoint={own}:0");
    let params = ReplayParams::new().position(0).length(end);
    let (_session, mut replayed) = archive.replay(id, &replay, 8, &params).unwrap();
    let mut count = 0_u64;
    await_condition("the replay", || {
        let take = |message: &[u8], _: &taran::Header<'_>| {
            assert_eq!(message, count.to_le_bytes());
            count += 1;
        };
        replayed.poll(take, 64).unwrap();
        count == 500
    });
    // Replication, to the archive at this driver.
    let mut local = connect_to(&controls[0], &far.client);
    local
        .replicate(id, &controls[1], 10, &ReplicationParams::new())
        .unwrap();
    await_condition("the replica", || {
        let replica = local.recordings(0).next().and_then(Result::ok);
        replica.is_some_and(|replica| {
            local
                .max_recorded_position(replica.recording_id)
                .is_ok_and(|position| position >= end)
        })
    });
    for host in [&near, &far] {
        assert_eq!(host.count(SecureCounter::PlainRefused), 0);
        assert_eq!(host.count(SecureCounter::OutOfBounds), 0);
        assert!(host.count(SecureCounter::BytesOpened) > 0);
    }
    for archive in archives {
        archive.close();
    }
}

#[test]
fn driver_follows_its_trust_file() {
    let keys = [3, 4].map(|number| Keys::new("reload", number));
    keys[0].trust(&[&keys[1]]);
    keys[1].trust(&[&keys[0]]);
    let [near, far] = [0, 1].map(|index| Host::start(&keys[index], ThreadingMode::Shared));
    let channel = format!("aeron:udp?endpoint={}:40123", own_address());
    let mut subscription = far.client.add_subscription(&channel, 1).unwrap();
    let publication = near.client.add_publication(&channel, 1).unwrap();
    exchange(&publication, &mut subscription);
    keys[0].trust(&[]);
    near.driver.reload_keys();
    await_condition("the link ends", || near.count(SecureCounter::Links) == 0);
    await_condition("the publication is not connected", || {
        !publication.is_connected()
    });
    keys[0].trust(&[&keys[1]]);
    await_condition("the publication is connected again", || {
        publication.is_connected()
    });
    let rotations = near.count(SecureCounter::Rotations);
    KeyDirectory::new(keys[0].path.clone())
        .write(KeyDirectory::ROTATE, "", 0o600, true)
        .unwrap();
    await_condition("keys are rotated", || {
        near.count(SecureCounter::Rotations) > rotations
    });
    // An invalid file changes nothing.
    fs::write(keys[0].path.join(KeyDirectory::TRUSTED), "nonsense\n").unwrap();
    near.driver.reload_keys();
    await_condition("the problem is recorded", || {
        let mut is_recorded = false;
        near.driver.errors().for_each(0, |error| {
            is_recorded |= error.text.contains("the keys in force stay");
        });
        is_recorded
    });
    assert_eq!(near.count(SecureCounter::Links), 1);
}

#[test]
fn driver_without_identity_or_with_readable_secret_does_not_start() {
    let keys = Keys::new("refused", 5);
    let launch = || {
        let context = DriverContext::new()
            .option("taran.secure.mode", "channels")
            .option("taran.secure.keys.dir", keys.path.display());
        match MediaDriver::launch_embedded(context) {
            Ok(_) => panic!("the driver starts"),
            Err(error) => error.to_string(),
        }
    };
    let path = keys.path.join(KeyDirectory::IDENTITY);
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&path, permissions).unwrap();
    };
    mode(0o644);
    let error = launch();
    assert!(
        error.contains("is accessible to others (mode 0644)"),
        "{error}"
    );
    mode(0o600);
    fs::remove_file(&path).unwrap();
    let error = launch();
    assert!(error.contains("run 'taran keys generate'"), "{error}");
}
