// SPDX-License-Identifier: Apache-2.0
//! `cnc.dat` with arbitrary contents, read by tools and by a client that connects.
//!
//! An input is either the file itself, or the bytes that overwrite a small valid file.

use std::path::Path;
use std::sync::Arc;

use taran::{Client, DriverView, ManualClock, MemoryStorage, Now, Progress, Storage};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc, CncSpec};

use crate::allocation;
use crate::script::Script;

const DIRECTORY: &str = "/cnc";
/// Longest file that is read.
const LENGTH_MAX: usize = 64 * 1024;
/// Memory limit in bytes: a client's tables, and copies of labels and errors.
const COST: usize = 256 * 1024;
const NOW: Now = Now {
    nanos: 1_000_000_000,
    epoch_millis: 1_700_000_000_000,
};

/// The smallest sections that work.
const SPEC: CncSpec = CncSpec {
    to_driver_length: 1024 + 768,
    to_clients_length: 1024 + 128,
    counters_metadata_length: 4 * 512,
    counters_values_length: 4 * 128,
    error_log_length: 512,
    client_liveness_timeout_ns: 10_000_000_000,
    start_timestamp_ms: NOW.epoch_millis,
    driver_pid: 42,
    page_size: 4096,
};

thread_local! {
    static STORAGE: MemoryStorage = {
        let storage = MemoryStorage::new();
        storage.create_dir_all(Path::new(DIRECTORY)).expect("memory has directories");
        storage
    };
}

/// Reads a file as tools and clients do.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let file = match script.u8() {
        0 => script.rest().to_vec(),
        _ => patched(script),
    };
    if file.len() > LENGTH_MAX {
        return;
    }
    STORAGE.with(|storage| {
        let path = Path::new(DIRECTORY).join(CNC_FILE_NAME);
        let written = storage.write_file(&path, &file);
        assert!(written.is_ok());
        allocation::within(COST + 8 * file.len(), || read_all(storage));
    });
}

/// Returns a valid file.
pub fn valid() -> Vec<u8> {
    let length = SPEC.file_length();
    let region = taran_core::memory::Region::anonymous(length).expect("there is memory");
    let cnc = Cnc::create(&region, &SPEC).expect("the lengths are valid");
    let commands = taran_core::ring::many_to_one::Consumer::open(&cnc.to_driver);
    commands
        .expect("the ring is valid")
        .set_heartbeat_ms(NOW.epoch_millis);
    cnc.publish();
    let mut file = vec![0; length];
    region.read(0, &mut file);
    file
}

/// Returns a valid file with the patches of the script.
fn patched(mut script: Script<'_>) -> Vec<u8> {
    thread_local! {
        static VALID: Vec<u8> = valid();
    }
    let mut file = VALID.with(Clone::clone);
    while !script.is_over() {
        let at = usize::from(script.u16()) % file.len();
        let patch_length = script.below(17);
        let patch = script.take(patch_length);
        let end = (at + patch.len()).min(file.len());
        file[at..end].copy_from_slice(&patch[..end - at]);
    }
    file
}

fn read_all(storage: &MemoryStorage) {
    let builder = || {
        Client::builder()
            .aeron_dir(DIRECTORY)
            .storage(Arc::new(storage.clone()))
            .clock(ManualClock::new(NOW))
            .on_error(|_| ())
            .invoker(true)
    };
    match builder().inspect_driver() {
        Ok(driver) => inspect(&driver),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match builder().connecting().poll(NOW) {
        Ok(Progress::Connected(client)) => {
            let pending = client.async_add_counter(5, b"key", "label");
            for _ in 0..3 {
                client.do_work(NOW);
            }
            if let Ok(mut pending) = pending {
                let _ = pending.poll();
            }
            client.close();
            assert!(client.is_closed());
        }
        Ok(Progress::Wait(pause)) => assert!(!pause.is_zero()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn inspect(driver: &DriverView) {
    assert!(driver.file_page_size().is_power_of_two());
    let _ = (
        driver.pid(),
        driver.start_timestamp_ms(),
        driver.is_active(),
    );
    let counters = driver.counters();
    counters.for_each(|meta| assert!(meta.label.is_ascii()));
    let mut errors = 0;
    driver.for_each_error(i64::MIN, |error| {
        assert!(error.text.is_ascii());
        errors += 1;
    });
    assert!(errors <= LENGTH_MAX / 24);
    let first = driver.next_correlation_id();
    assert_eq!(driver.next_correlation_id(), first.wrapping_add(1));
    let _ = driver.request_termination(b"token");
}
