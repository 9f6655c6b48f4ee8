//! Drivers with transport security over real sockets, in every threading mode, and key files that change.

#![cfg(feature = "secure")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "shared/own_address.rs"]
mod own_address;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use own_address::own_address;
use taran::{Client, Publication, Subscription};
use taran_driver::{DriverContext, KeyDirectory, MediaDriver};
use taran_protocol::counter::SecureCounter;
use taran_protocol::option::ThreadingMode;
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
    fn start(keys: &Keys, mode: ThreadingMode) -> Self {
        let context = DriverContext::new()
            .threading_mode(mode)
            .option("taran.secure.mode", "all")
            .option("taran.secure.keys.dir", keys.path.display());
        let driver = MediaDriver::launch_embedded(context).unwrap();
        let client = Client::builder()
            .aeron_dir(driver.aeron_dir())
            .connect()
            .unwrap();
        Self { client, driver }
    }

    fn count(&self, which: SecureCounter) -> i64 {
        let counters = self.driver.counters();
        let mut value = None;
        counters.for_each(|counter| {
            if counter.type_id == which.type_id() {
                value = counters.value(counter.id);
            }
        });
        value.unwrap()
    }
}

/// Sends numbered messages and receives them in order.
fn exchange(publication: &Publication, subscription: &mut Subscription) {
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
            thread::yield_now();
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
