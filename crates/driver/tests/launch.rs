// SPDX-License-Identifier: Apache-2.0
//! Starting and closing a driver on real files, with real threads (docs/spec/shared-memory.md §1.3, docs/spec/uri-and-configuration.md §5.2).

#![cfg(not(loom))] // needs the modules that start drivers
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::error_log::ErrorLog;
use taran_core::memory::{CreateOptions, FileStorage, MemoryError, MemoryStorage, Region, Storage};
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::command::Command;
use taran_protocol::option::ThreadingMode;

/// Directory of one test, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = Path::new("/dev/shm");
        let parent = if parent.is_dir() {
            parent.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = parent.join(format!("taran-launch-{}-{nth}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn directory(&self) -> PathBuf {
        self.0.join("aeron")
    }

    fn context(&self) -> DriverContext {
        DriverContext::new().aeron_dir(self.directory())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Generous timeout for busy machines.
const PATIENT_MS: i64 = 3_600_000;

fn cnc(directory: &Path) -> Cnc {
    Cnc::open(&FileStorage.open(&directory.join(CNC_FILE_NAME)).unwrap()).unwrap()
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "it does not come true");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a command to a driver.
fn send(directory: &Path, command: &Command<'_>) {
    let mut bytes = Vec::new();
    let type_id = command.encode(&mut bytes);
    Producer::open(&cnc(directory).to_driver)
        .unwrap()
        .write(type_id, &bytes)
        .unwrap();
}

#[test]
fn every_threading_mode_serves_clients_and_closes() {
    for mode in [
        ThreadingMode::Dedicated,
        ThreadingMode::SharedNetwork,
        ThreadingMode::Shared,
        ThreadingMode::Invoker,
    ] {
        let scratch = Scratch::new();
        let mut driver = MediaDriver::launch(scratch.context().threading_mode(mode)).unwrap();
        let directory = driver.aeron_dir().to_owned();
        let ring = Producer::open(&cnc(&directory).to_driver).unwrap();
        send(
            &directory,
            &Command::AddSubscription {
                client_id: 8,
                correlation_id: 9,
                stream_id: 10,
                channel: "aeron:ipc",
            },
        );
        wait_until(|| {
            driver.invoke();
            driver
                .counters()
                .find_by_type_and_registration(11, 8)
                .is_some()
        });
        let before = ring.consumer_heartbeat_ms();
        wait_until(|| {
            driver.invoke();
            ring.consumer_heartbeat_ms() > before
        });
        driver.close().unwrap();
        assert_eq!(ring.consumer_heartbeat_ms(), -1, "{mode:?}");
        assert!(
            directory.join(CNC_FILE_NAME).exists(),
            "the directory stays unless asked otherwise"
        );
    }
}

#[test]
fn idle_invoked_driver_executes_command_in_next_invocation() {
    let scratch = Scratch::new();
    let context = scratch.context().threading_mode(ThreadingMode::Invoker);
    let mut driver = MediaDriver::launch(context).unwrap();
    let directory = driver.aeron_dir().to_owned();
    let cnc = cnc(&directory);
    let ring = Producer::open(&cnc.to_driver).unwrap();
    let mut keepalive = Vec::new();
    let command = Command::ClientKeepalive {
        client_id: 8,
        correlation_id: 0,
    };
    let type_id = command.encode(&mut keepalive);
    for _ in 0..1_000 {
        // Right after an idle duty cycle the conductor is skipped.
        while driver.invoke() > 0 {}
        ring.write(type_id, &keepalive).unwrap();
        driver.invoke();
        assert_eq!(ring.size(), 0);
    }
}

#[test]
fn second_driver_in_directory_fails_and_leaves_the_first() {
    let scratch = Scratch::new();
    let first = MediaDriver::launch(scratch.context()).unwrap();
    // Even if the heartbeat of the first driver is late.
    let patient = scratch.context().option("aeron.driver.timeout", PATIENT_MS);
    let refused = MediaDriver::launch(patient.delete_dir_on_shutdown(true)).unwrap_err();
    let DriverError::ActiveDriver { pid, age_ms, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*pid, i64::from(std::process::id()));
    assert!((0..PATIENT_MS).contains(age_ms), "{age_ms}");
    assert!(refused.to_string().contains("aeron.dir"), "{refused}");
    assert!(first.aeron_dir().join(CNC_FILE_NAME).exists());
}

#[test]
fn concurrent_starts_in_directory_are_serialized() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.directory()).unwrap();
    let starting = FileStorage.try_lock(&scratch.directory()).unwrap();
    let context = || scratch.context().option("aeron.driver.timeout", "50");
    let refused = MediaDriver::launch(context()).unwrap_err();
    assert!(matches!(refused, DriverError::Starting { .. }), "{refused}");
    let text = refused.to_string();
    for part in [
        "aeron.dir",
        "aeron.driver.timeout=50",
        scratch.directory().to_str().unwrap(),
    ] {
        assert!(text.contains(part), "{text}");
    }
    drop(starting);
    drop(MediaDriver::launch(context()).unwrap());
}

#[test]
fn losers_of_concurrent_start_leave_the_winner_intact() {
    for _ in 0..5 {
        let scratch = Scratch::new();
        let launch = || {
            let context = scratch
                .context()
                .option("aeron.counters.buffer.length", "1m");
            MediaDriver::launch(context)
        };
        let mut drivers = Vec::new();
        thread::scope(|scope| {
            let starting: Vec<_> = (0..4).map(|_| scope.spawn(launch)).collect();
            for started in starting {
                match started.join().unwrap() {
                    Ok(driver) => drivers.push(driver),
                    Err(DriverError::ActiveDriver { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert_eq!(drivers.len(), 1);
        // The files belong to the running driver.
        for file in ["loss-report.dat", "publications", "images"] {
            assert!(scratch.directory().join(file).exists(), "{file}");
        }
        send(
            &scratch.directory(),
            &Command::ClientKeepalive {
                client_id: 1,
                correlation_id: 0,
            },
        );
        let commands = Producer::open(&cnc(&scratch.directory()).to_driver).unwrap();
        wait_until(|| commands.size() == 0);
    }
}

#[test]
fn directory_of_closed_driver_is_reused() {
    let scratch = Scratch::new();
    MediaDriver::launch(scratch.context())
        .unwrap()
        .close()
        .unwrap();
    fs::write(scratch.directory().join("publications/5.logbuffer"), b"old").unwrap();
    fs::write(scratch.directory().join("notes.txt"), b"not the driver's").unwrap();
    let driver = MediaDriver::launch(scratch.context().delete_dir_on_shutdown(true)).unwrap();
    assert!(!driver.aeron_dir().join("publications/5.logbuffer").exists());
    driver.close().unwrap();
    let left: Vec<_> = fs::read_dir(scratch.directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["notes.txt"], "only what the driver made is deleted");
}

#[test]
fn directory_is_deleted_on_shutdown_if_configured() {
    let scratch = Scratch::new();
    let driver = MediaDriver::launch(scratch.context().delete_dir_on_shutdown(true)).unwrap();
    drop(driver);
    assert!(!scratch.directory().exists());
}

#[test]
fn errors_of_dead_driver_are_saved() {
    let scratch = Scratch::new();
    MediaDriver::launch(scratch.context())
        .unwrap()
        .close()
        .unwrap();
    let dead = cnc(&scratch.directory());
    ErrorLog::open(dead.error_log.clone())
        .record(1_700_000_000_000, 11, "something went wrong")
        .unwrap();
    drop(MediaDriver::launch(scratch.context()).unwrap());
    let saved = fs::read_dir(&scratch.0)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with("-error.log"))
        .unwrap();
    let text = fs::read_to_string(saved).unwrap();
    assert!(text.contains("1 observations from 2023-11-1"), "{text}");
    assert!(
        text.contains("something went wrong") && text.contains("1 distinct errors observed."),
        "{text}"
    );
}

#[test]
fn dead_driver_is_replaced_and_stalled_driver_is_not() {
    let scratch = Scratch::new();
    MediaDriver::launch(scratch.context())
        .unwrap()
        .close()
        .unwrap();
    // Official drivers have no lock file.
    fs::remove_file(scratch.directory().join("driver.lock")).unwrap();
    let ring = Consumer::open(&cnc(&scratch.directory()).to_driver).unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    ring.set_heartbeat_ms(now.as_millis() as i64 - 5_000);
    let patient = scratch.context().option("aeron.driver.timeout", PATIENT_MS);
    assert!(matches!(
        MediaDriver::launch(patient),
        Err(DriverError::ActiveDriver { .. })
    ));
    let impatient = scratch.context().option("aeron.driver.timeout", 1000);
    drop(MediaDriver::launch(impatient).unwrap());
}

#[test]
fn driver_that_released_its_lock_is_replaced_at_once() {
    let scratch = Scratch::new();
    let patient = || scratch.context().option("aeron.driver.timeout", PATIENT_MS);
    MediaDriver::launch(patient()).unwrap().close().unwrap();
    let cnc_path = scratch.directory().join(CNC_FILE_NAME);
    // As if it had been killed after its last heartbeat.
    let ring = Consumer::open(&cnc(&scratch.directory()).to_driver).unwrap();
    ring.set_heartbeat_ms(i64::MAX);
    drop(MediaDriver::launch(patient()).unwrap());
    // As if it had been killed before it had completed the file.
    fs::write(&cnc_path, [0; 4096]).unwrap();
    drop(MediaDriver::launch(patient()).unwrap());
    fs::write(&cnc_path, []).unwrap();
    drop(MediaDriver::launch(patient()).unwrap());
}

/// A lock file of another driver says nothing about the owner of `cnc.dat`.
#[test]
fn released_lock_of_another_driver_is_ignored() {
    let scratch = Scratch::new();
    MediaDriver::launch(scratch.context())
        .unwrap()
        .close()
        .unwrap();
    let lock = scratch.directory().join("driver.lock");
    let stale = fs::read_to_string(&lock).unwrap().replace("pid ", "pid 9");
    let first = MediaDriver::launch(scratch.context()).unwrap();
    fs::remove_file(&lock).unwrap();
    fs::write(&lock, stale).unwrap();
    let refused = MediaDriver::launch(scratch.context()).unwrap_err();
    assert!(
        matches!(refused, DriverError::ActiveDriver { .. }),
        "{refused}"
    );
    drop(first);
}

#[test]
fn driver_leaves_directory_to_its_successor_on_shutdown() {
    let scratch = Scratch::new();
    let context = || {
        let context = scratch.context().threading_mode(ThreadingMode::Invoker);
        context.delete_dir_on_shutdown(true)
    };
    let first = MediaDriver::launch(context()).unwrap();
    // Start times have a resolution of a millisecond.
    thread::sleep(Duration::from_millis(2));
    let second = MediaDriver::launch(context().delete_dir_on_start(true)).unwrap();
    first.close().unwrap();
    assert!(scratch.directory().join(CNC_FILE_NAME).exists());
    second.close().unwrap();
    assert!(!scratch.directory().exists());
}

#[test]
fn unfinished_cnc_file_is_replaced_after_driver_timeout() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.directory()).unwrap();
    fs::write(scratch.directory().join(CNC_FILE_NAME), [0; 4096]).unwrap();
    let driver = MediaDriver::launch(scratch.context().option("aeron.driver.timeout", 50)).unwrap();
    assert!(Producer::open(&cnc(driver.aeron_dir()).to_driver).is_ok());
}

#[test]
fn directory_of_other_version_is_not_changed() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.directory()).unwrap();
    let mut file = vec![0; 65_536];
    file[..4].copy_from_slice(&(7i32 << 16).to_le_bytes());
    fs::write(scratch.directory().join(CNC_FILE_NAME), &file).unwrap();
    let refused = MediaDriver::launch(scratch.context()).unwrap_err();
    assert!(
        matches!(refused, DriverError::ForeignVersion { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("7.0.0"), "{refused}");
    assert_eq!(
        fs::read(scratch.directory().join(CNC_FILE_NAME)).unwrap(),
        file
    );
    drop(MediaDriver::launch(scratch.context().delete_dir_on_start(true)).unwrap());
}

#[test]
fn invalid_directory_is_reported() {
    let scratch = Scratch::new();
    let file = scratch.0.join("file");
    fs::write(&file, b"").unwrap();
    let refused =
        MediaDriver::launch(DriverContext::new().aeron_dir(file.join("aeron"))).unwrap_err();
    assert!(
        matches!(refused, DriverError::Directory { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("aeron.dir"), "{refused}");
}

#[test]
fn insufficient_shared_memory_is_reported_with_remedy() {
    // Too little for cnc.dat, and enough for cnc.dat but not for the loss report.
    for (capacity, present) in [(1 << 20, "is 1m"), (48_238_592, "is 46m")] {
        let storage = MemoryStorage::with_capacity(capacity);
        let context = DriverContext::new().aeron_dir("/aeron");
        let refused = MediaDriver::launch(context.storage(Arc::new(storage.clone()))).unwrap_err();
        assert!(matches!(refused, DriverError::Space { .. }), "{refused}");
        let text = refused.to_string();
        for expected in [
            "needed=49287168",
            present,
            "--shm-size=48m",
            "aeron.counters.buffer.length=8388608",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(storage.mapped_files().is_empty());
    }
}

/// Storage with injected faults.
#[derive(Debug)]
struct FailingStorage(MemoryStorage, Failure);

#[derive(Debug)]
enum Failure {
    /// Insufficient space for the loss report, detected at its creation.
    NoLossReport,
    /// The first existence check finds nothing, as if the files had been created right after it.
    LateOpen(AtomicBool),
}

impl Storage for FailingStorage {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        if matches!(self.1, Failure::NoLossReport) && path.ends_with("loss-report.dat") {
            return Err(MemoryError::OutOfMemory { len });
        }
        self.0.create(path, len, options)
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        self.0.reserve(path, region, offset, len)
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        self.0.open(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        self.0.available(directory)
    }

    fn exists(&self, path: &Path) -> bool {
        match &self.1 {
            Failure::LateOpen(has_looked) if !has_looked.swap(true, Ordering::Relaxed) => false,
            _ => self.0.exists(path),
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir_all(path)
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        self.0.write_file(path, contents)
    }
}

#[test]
fn failed_start_leaves_no_unfinished_file() {
    let storage = MemoryStorage::new();
    let context = DriverContext::new().aeron_dir("/aeron");
    let refused = MediaDriver::launch(context.storage(Arc::new(FailingStorage(
        storage.clone(),
        Failure::NoLossReport,
    ))));
    assert!(matches!(refused, Err(DriverError::Memory(_))));
    assert!(storage.mapped_files().is_empty());
    // A later driver must not wait for an unfinished file.
    let context = DriverContext::new()
        .aeron_dir("/aeron")
        .option("aeron.driver.timeout", "3600000");
    drop(MediaDriver::launch(context.storage(Arc::new(storage))).unwrap());
}

#[test]
fn second_of_two_concurrent_starts_leaves_the_first_intact() {
    let storage = MemoryStorage::new();
    let start = |storage: Arc<dyn Storage>| {
        MediaDriver::launch(DriverContext::new().aeron_dir("/aeron").storage(storage))
    };
    let first = start(Arc::new(storage.clone())).unwrap();
    // It found no directory, and waited for the start-up lock while the other driver started.
    let late = FailingStorage(storage.clone(), Failure::LateOpen(AtomicBool::new(false)));
    let refused = start(Arc::new(late)).unwrap_err();
    assert!(
        matches!(refused, DriverError::ActiveDriver { .. }),
        "{refused}"
    );
    for folder in ["publications", "images"] {
        assert!(
            storage.exists(&Path::new("/aeron").join(folder)),
            "{folder}"
        );
    }
    drop(first);
}

#[test]
fn invalid_options_are_reported_with_name_and_value() {
    for (name, value, expected) in [
        (
            "aeron.conductor.buffer.length",
            "1m",
            "aeron.conductor.buffer.length",
        ),
        (
            "aeron.counters.buffer.length",
            "500m",
            "aeron.counters.buffer.length",
        ),
        (
            "aeron.client.liveness.timeout",
            "1s",
            "aeron.timer.interval",
        ),
        (
            "aeron.publication.unblock.timeout",
            "10s",
            "aeron.client.liveness.timeout",
        ),
        (
            "aeron.untethered.resting.timeout",
            "1s",
            "aeron.untethered.resting.timeout",
        ),
        ("aeron.mtu.length", "65504", "aeron.socket.so_sndbuf"),
        (
            "aeron.rcv.initial.window.length",
            "1m",
            "aeron.socket.so_rcvbuf",
        ),
        ("aeron.rcv.initial.window.length", "1k", "aeron.mtu.length"),
        (
            "aeron.publication.reserved.session.id.low",
            "2000",
            "aeron.publication.reserved.session.id.high",
        ),
        (
            "aeron.conductor.idle.strategy.init.args",
            "nonsense",
            "nonsense",
        ),
        ("aeron.no.such.option", "1", "aeron.no.such.option"),
        ("aeron.threading.mode", "MANY", "DEDICATED"),
        (
            "taran.net",
            "xdp",
            "taran.net=xdp: network backend xdp is not available",
        ),
    ] {
        let scratch = Scratch::new();
        // So that the check of the send buffer fails.
        let context = scratch
            .context()
            .option("aeron.socket.so_sndbuf", "32k")
            .option(name, value);
        let refused = MediaDriver::launch(context).unwrap_err().to_string();
        assert!(refused.contains(expected), "{name}={value}: {refused}");
        assert!(
            !scratch.directory().exists(),
            "{name}: nothing is made before all is checked"
        );
    }
}

#[test]
fn accepted_termination_request_reaches_waiting_thread() {
    let scratch = Scratch::new();
    let context = scratch
        .context()
        .termination_validator(|_, token| token == b"open sesame");
    let driver = MediaDriver::launch(context).unwrap();
    let directory = driver.aeron_dir().to_owned();
    send(
        &directory,
        &Command::TerminateDriver {
            client_id: 1,
            correlation_id: 2,
            token: b"please",
        },
    );
    let ring = Producer::open(&cnc(&directory).to_driver).unwrap();
    wait_until(|| ring.size() == 0);
    assert!(driver.termination().is_none());
    send(
        &directory,
        &Command::TerminateDriver {
            client_id: 1,
            correlation_id: 2,
            token: b"open sesame",
        },
    );
    assert!(matches!(
        driver.wait_for_termination(Duration::from_secs(30)),
        Some(Termination::Requested)
    ));
}

#[test]
fn embedded_driver_has_its_own_directory() {
    let first = MediaDriver::launch_embedded(DriverContext::new()).unwrap();
    let second = MediaDriver::launch_embedded(DriverContext::new()).unwrap();
    assert_ne!(first.aeron_dir(), second.aeron_dir());
    let directory = first.aeron_dir().to_owned();
    first.close().unwrap();
    assert!(!directory.exists());
}
