// SPDX-License-Identifier: Apache-2.0
//! Connecting to a driver, and the errors if that fails.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use taran::{
    ClientBuilder, ConnectError, Connecting, ManualClock, MemoryStorage, Progress, Storage, Version,
};
use taran_core::memory::CreateOptions;
use taran_core::sync::Ordering;

use crate::fake_driver::{DIRECTORY, FakeDriver, Fixture, START, builder, connect};
use crate::images::{Events, record, take_events};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Advances the time until connecting fails. Returns the error and the elapsed time.
fn outcome(mut connecting: Connecting, clock: &ManualClock) -> (ConnectError, Duration) {
    let mut waited = Duration::ZERO;
    loop {
        match connecting.poll(clock.read()) {
            Ok(Progress::Wait(pause)) => {
                assert!(!pause.is_zero());
                clock.advance(pause);
                waited += pause;
            }
            Ok(Progress::Connected(client)) => panic!("connected: {client:?}"),
            Err(error) => return (error, waited),
        }
    }
}

fn error_of(storage: &MemoryStorage, clock: &ManualClock) -> (ConnectError, Duration) {
    outcome(builder(storage, clock).connecting(), clock)
}

fn cnc() -> PathBuf {
    Path::new(DIRECTORY).join("cnc.dat")
}

#[test]
fn connect_without_driver_names_directory_and_options() {
    let (error, waited) = error_of(&MemoryStorage::new(), &ManualClock::new(START));
    assert_eq!(
        error,
        ConnectError::NoDriver {
            directory: DIRECTORY.into(),
            waited: TIMEOUT
        }
    );
    assert!(waited >= TIMEOUT && waited < TIMEOUT + Duration::from_secs(1));
    let text = error.to_string();
    for part in [
        DIRECTORY,
        "AERON_DIR",
        "aeron.dir",
        "ClientBuilder::aeron_dir",
        "taran driver",
    ] {
        assert!(text.contains(part), "{part} in: {text}");
    }
}

#[test]
fn connect_finds_driver_that_starts_later() {
    let clock = ManualClock::new(START);
    let storage = MemoryStorage::new();
    let mut connecting = builder(&storage, &clock).connecting();
    assert!(matches!(
        connecting.poll(clock.read()),
        Ok(Progress::Wait(_))
    ));
    clock.advance(Duration::from_secs(9));
    let _driver = FakeDriver::start_in(storage, clock.clone());
    assert!(matches!(
        connecting.poll(clock.read()),
        Ok(Progress::Connected(_))
    ));
}

#[test]
fn connect_without_driver_gives_one_notice_after_a_second() {
    let clock = ManualClock::new(START);
    let storage = MemoryStorage::new();
    let (sender, notices) = mpsc::channel();
    let mut connecting = builder(&storage, &clock)
        .on_waiting(move |notice| sender.send(notice.clone()).unwrap())
        .connecting();
    let mut poll = || connecting.poll(clock.read()).map(drop).unwrap();
    poll();
    clock.advance(Duration::from_millis(999));
    poll();
    assert!(notices.try_recv().is_err());
    clock.advance(Duration::from_millis(1));
    poll();
    let notice = notices.try_recv().unwrap();
    assert_eq!(
        (notice.aeron_dir(), notice.timeout()),
        (Path::new(DIRECTORY), TIMEOUT)
    );
    assert!(notice.to_string().contains(DIRECTORY), "{notice}");
    clock.advance(Duration::from_secs(1));
    poll();
    assert!(notices.try_recv().is_err());
}

#[test]
fn client_without_configured_name_is_named_by_program_and_process() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    let unnamed = taran::Client::builder()
        .aeron_dir(DIRECTORY)
        .storage(Arc::new(driver.storage.clone()))
        .invoker(true);
    let name = connect(unnamed, &clock).name().to_owned();
    let pid = format!("[{}]", std::process::id());
    assert!(
        name.starts_with("client-") && name.ends_with(&pid),
        "{name}"
    );
}

#[test]
fn connect_to_dead_driver_reports_heartbeat_age() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    clock.advance(Duration::from_secs(3600));
    let (error, _) = error_of(&driver.storage, &clock);
    let ConnectError::DriverDied {
        directory,
        age,
        timeout,
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (directory.as_path(), *timeout),
        (Path::new(DIRECTORY), TIMEOUT)
    );
    assert!(*age >= Duration::from_secs(3600) && *age < Duration::from_secs(3620));
    assert!(error.to_string().contains("Start it again"), "{error}");
}

#[test]
fn connect_to_killed_driver_waits_for_the_next_one() {
    let clock = ManualClock::new(START);
    let mut driver = FakeDriver::start(clock.clone());
    driver.take_lock();
    let view = || {
        let builder = builder(&driver.storage, &clock);
        builder.inspect_driver().unwrap()
    };
    let observer = view();
    driver.lock = None;
    assert!(!observer.is_active() && !view().is_active());
    let mut connecting = builder(&driver.storage, &clock).connecting();
    assert!(matches!(
        connecting.poll(clock.read()),
        Ok(Progress::Wait(_))
    ));
    for file in ["cnc.dat", "driver.lock"] {
        driver
            .storage
            .remove(&Path::new(DIRECTORY).join(file))
            .unwrap();
    }
    let mut next = FakeDriver::start_in(driver.storage.clone(), clock.clone());
    next.take_lock();
    assert!(matches!(
        connecting.poll(clock.read()),
        Ok(Progress::Connected(_))
    ));
}

#[test]
fn connect_to_killed_driver_reports_its_process() {
    let clock = ManualClock::new(START);
    let mut driver = FakeDriver::start(clock.clone());
    driver.take_lock();
    driver.lock = None;
    // Its last heartbeat does not get old in this test.
    driver.set_heartbeat_ms(i64::MAX);
    let (error, _) = error_of(&driver.storage, &clock);
    let ConnectError::DriverProcessEnded {
        directory, waited, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (directory.as_path(), *waited),
        (Path::new(DIRECTORY), TIMEOUT)
    );
    assert!(error.is_retryable());
    assert!(error.to_string().contains("Start it again"), "{error}");
}

#[test]
fn connect_to_stopped_driver_reports_shutdown() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    driver.set_heartbeat_ms(-1);
    let (error, _) = error_of(&driver.storage, &clock);
    assert_eq!(
        error,
        ConnectError::DriverStopped {
            directory: DIRECTORY.into(),
            waited: TIMEOUT
        }
    );
}

#[test]
fn connect_rejects_other_versions_at_once() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    for found in [Version::new(1, 0, 0), Version::new(0, 1, 0)] {
        driver.cnc.header.version.store(found.0, Ordering::Release);
        let (error, waited) = error_of(&driver.storage, &clock);
        assert_eq!(
            error,
            ConnectError::Version {
                path: cnc(),
                found,
                expected: Version::new(0, 2, 0)
            }
        );
        assert_eq!(waited, Duration::ZERO);
        assert!(error.to_string().contains(&found.to_string()), "{error}");
    }
}

#[test]
fn connect_to_unfinished_file_reports_not_ready() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    driver.cnc.header.version.store(0, Ordering::Release);
    let (error, _) = error_of(&driver.storage, &clock);
    assert_eq!(
        error,
        ConnectError::NotReady {
            path: cnc(),
            waited: TIMEOUT
        }
    );

    driver.cnc.publish();
    driver.set_heartbeat_ms(0);
    let (error, _) = error_of(&driver.storage, &clock);
    assert_eq!(
        error,
        ConnectError::NotReady {
            path: cnc(),
            waited: TIMEOUT
        }
    );
}

#[test]
fn connect_to_short_file_reports_both_lengths() {
    let clock = ManualClock::new(START);
    let storage = MemoryStorage::new();
    storage.create_dir_all(Path::new(DIRECTORY)).unwrap();
    let region = storage.create(&cnc(), 100, CreateOptions::SPARSE).unwrap();
    let (error, _) = error_of(&storage, &clock);
    assert_eq!(
        error,
        ConnectError::TooShort {
            path: cnc(),
            length: region.len(),
            needed: 128
        }
    );

    let driver = FakeDriver::start(clock.clone());
    let length = driver.storage.open(&cnc()).unwrap().len();
    driver
        .cnc
        .header
        .error_log_length
        .store(i32::MAX, Ordering::Relaxed);
    let (error, waited) = error_of(&driver.storage, &clock);
    assert!(
        matches!(error, ConnectError::TooShort { length: found, .. } if found == length),
        "{error:?}"
    );
    assert!(waited >= TIMEOUT, "the driver may still be at it");
}

#[test]
fn connect_rejects_invalid_lengths() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    let header = &driver.cnc.header;
    for (field, length) in [
        (&header.to_driver_length, -5),
        (&header.to_driver_length, 12_345),
        (&header.to_clients_length, 1000),
    ] {
        let before = field.swap(length, Ordering::Relaxed);
        let (error, waited) = error_of(&driver.storage, &clock);
        assert!(matches!(error, ConnectError::Damaged { .. }), "{error:?}");
        assert_eq!(waited, Duration::ZERO);
        field.store(before, Ordering::Relaxed);
        driver.set_heartbeat_ms(clock.read().epoch_millis);
    }
}

#[cfg(unix)]
#[test]
fn connect_to_unreadable_file_reports_it() {
    use std::os::unix::fs::PermissionsExt;

    let directory = std::env::temp_dir().join(format!("taran-connecting-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("cnc.dat");
    std::fs::write(&file, [0; 4096]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = std::fs::read(&file).is_ok();
    let builder = ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir(&directory)
        .driver_timeout(Duration::from_millis(40));
    let error = builder.connect().unwrap_err();
    // Root can read any file.
    if is_root {
        assert!(matches!(error, ConnectError::NotReady { .. }), "{error:?}");
    } else {
        assert!(
            matches!(error, ConnectError::NotReadable { .. }),
            "{error:?}"
        );
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn options_take_precedence_from_code_over_properties_over_environment() {
    let directories = |builder: ClientBuilder| match outcome(
        builder.storage(Arc::new(MemoryStorage::new())).connecting(),
        &ManualClock::new(START),
    ) {
        (ConnectError::NoDriver { directory, waited }, _) => {
            (directory.display().to_string(), waited.as_millis())
        }
        (error, _) => panic!("{error:?}"),
    };
    let environment = || {
        ClientBuilder::with_environment([("AERON_DIR", "/env"), ("AERON_DRIVER_TIMEOUT", "200")])
    };
    assert_eq!(directories(environment()), ("/env".to_owned(), 200));
    assert_eq!(
        directories(environment().property("aeron.dir", "/prop")),
        ("/prop".to_owned(), 200)
    );
    let code = environment()
        .aeron_dir("/code")
        .property("aeron.dir", "/prop")
        .property("aeron.driver.timeout", "300");
    assert_eq!(directories(code), ("/code".to_owned(), 300));
    let file = std::env::temp_dir().join(format!("taran-client-{}.properties", std::process::id()));
    std::fs::write(
        &file,
        "# a comment\naeron.dir=/file\naeron.driver.timeout=100\n",
    )
    .unwrap();
    assert_eq!(
        directories(environment().properties_file(&file)),
        ("/file".to_owned(), 100)
    );
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn connect_rejects_invalid_options_before_opening_files() {
    let refused =
        |builder: ClientBuilder| match outcome(builder.connecting(), &ManualClock::new(START)) {
            (ConnectError::Option(text), waited) => {
                assert_eq!(waited, Duration::ZERO);
                text
            }
            (error, _) => panic!("{error:?}"),
        };
    let none = || ClientBuilder::with_environment::<&str, &str>([]);
    assert!(
        refused(ClientBuilder::with_environment([(
            "AERON_DRIVER_TIMEOUT",
            "soon"
        )]))
        .contains("AERON_DRIVER_TIMEOUT")
    );
    assert!(refused(none().property("aeron.client.nme", "x")).contains("aeron.client.name"));
    assert!(refused(none().client_name("x".repeat(101))).contains("101"));
    assert!(refused(none().driver_timeout(Duration::ZERO)).contains("aeron.driver.timeout"));
    assert!(refused(none().properties_file("/no/such/file")).contains("/no/such/file"));
}

#[test]
fn misspelt_variable_is_reported_to_error_handler() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    let events = Events::default();
    let recorder = Arc::clone(&events);
    let builder = ClientBuilder::with_environment([
        ("AERON_CLIENT_NAM", "x"),
        ("AERON_MTU_LENGTH", "8k"),
        ("HOME", "/"),
    ])
    .aeron_dir(DIRECTORY)
    .storage(Arc::new(driver.storage.clone()))
    .invoker(true)
    .on_error(move |error| record(&recorder, error.to_string()));
    let _client = connect(builder, &clock);
    let reports = take_events(&events);
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("AERON_CLIENT_NAME"), "{reports:?}");
}

#[test]
fn connect_rejects_keepalive_longer_than_liveness_timeout() {
    let clock = ManualClock::new(START);
    let driver = FakeDriver::start(clock.clone());
    let builder = builder(&driver.storage, &clock).keepalive_interval(Duration::from_secs(10));
    let (error, _) = outcome(builder.connecting(), &clock);
    assert!(
        matches!(&error, ConnectError::Option(text) if text.contains("aeron.client.liveness.timeout")),
        "{error}"
    );
}

#[test]
fn clients_have_distinct_ids() {
    let fixture = Fixture::new();
    let other = connect(
        builder(&fixture.driver.storage, &fixture.clock),
        &fixture.clock,
    );
    assert_ne!(fixture.client.client_id(), other.client_id());
    assert_eq!(fixture.client.aeron_dir(), Path::new(DIRECTORY));
}
