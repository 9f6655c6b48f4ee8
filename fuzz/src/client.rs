// SPDX-License-Identifier: Apache-2.0
//! Client of a hostile driver: the memory that a driver shares with its clients, without a driver.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taran::{Client, ClientBuilder, ManualClock, MemoryStorage, Now, Progress, Storage};
use taran_core::broadcast::Transmitter;
use taran_core::counters::{Counter, CounterSpec, CounterTable};
use taran_core::memory::{CreateOptions, Region};
use taran_core::ring::many_to_one::Consumer;
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc, CncSpec};
use taran_protocol::log::{LogBuffers, LogKind, LogSpec, file_length};
use taran_protocol::response::Response;

use crate::log::TERM_LENGTH;

/// Aeron directory.
pub const DIRECTORY: &str = "/hostile";
/// Capacity in counters.
pub const COUNTERS: usize = 16;

const START: Now = Now {
    nanos: 5_000_000_000,
    epoch_millis: 1_700_000_000_000,
};

/// Shared memory of the simulated driver.
#[derive(Debug)]
pub struct Shared {
    /// Clock of the client.
    pub clock: ManualClock,
    /// Files.
    pub storage: MemoryStorage,
    /// `cnc.dat`.
    pub cnc: Cnc,
    /// Counters with the ids 0 to 3.
    pub counters: Vec<Counter>,
    commands: Consumer,
    responses: Transmitter,
}

impl Shared {
    /// Creates an empty directory with a CnC file.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn new() -> Self {
        let storage = MemoryStorage::new();
        storage
            .create_dir_all(Path::new(DIRECTORY))
            .expect("memory has directories");
        let spec = CncSpec {
            to_driver_length: 8 * 1024 + 768,
            to_clients_length: 4 * 1024 + 128,
            counters_metadata_length: COUNTERS * 512,
            counters_values_length: COUNTERS * 128,
            error_log_length: 1024,
            ..CncSpec::default()
        };
        let path = Path::new(DIRECTORY).join(CNC_FILE_NAME);
        let length = spec.file_length() as u64;
        let region = storage
            .create(&path, length, CreateOptions::RESERVED)
            .expect("there is memory");
        let cnc = Cnc::create(&region, &spec).expect("the lengths are sound");
        let mut table = CounterTable::new(
            cnc.counters_metadata.clone(),
            cnc.counters_values.clone(),
            Duration::from_secs(1),
        );
        let counters = (0..4)
            .map(|_| {
                table
                    .allocate_with(&CounterSpec::default(), 0)
                    .expect("there is room")
            })
            .collect();
        let shared = Self {
            clock: ManualClock::new(START),
            commands: Consumer::open(&cnc.to_driver).expect("the ring is sound"),
            responses: Transmitter::open(&cnc.to_clients).expect("the buffer is sound"),
            storage,
            cnc,
            counters,
        };
        shared.heartbeat();
        shared.cnc.publish();
        shared
    }

    /// Creates a log.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn log(&self, name: &str, kind: LogKind) -> (LogBuffers, Region) {
        let spec = LogSpec {
            mtu: 1408,
            correlation_id: 1,
            publication_window: if kind == LogKind::Image {
                0
            } else {
                TERM_LENGTH / 2
            },
            ..LogSpec::new(kind, 7, 10, 0, TERM_LENGTH)
        };
        let length = file_length(TERM_LENGTH, spec.page_size) as u64;
        let region = self
            .storage
            .create(Path::new(name), length, CreateOptions::RESERVED)
            .expect("there is memory");
        let log = LogBuffers::create(&region, &spec, 0).expect("the spec is sound");
        (log, region)
    }

    /// Connects a client.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn connect(&self) -> Client {
        let nothing: [(&str, &str); 0] = [];
        let builder = ClientBuilder::with_environment(nothing)
            .aeron_dir(DIRECTORY)
            .storage(Arc::new(self.storage.clone()))
            .clock(self.clock.clone())
            .on_error(|_| ())
            .invoker(true);
        match builder.connecting().poll(self.clock.read()) {
            Ok(Progress::Connected(client)) => client,
            other => panic!("not connected: {other:?}"),
        }
    }

    /// Updates the driver heartbeat.
    pub fn heartbeat(&self) {
        self.commands
            .set_heartbeat_ms(self.clock.read().epoch_millis);
    }

    /// Sends a response.
    pub fn send(&mut self, response: &Response<'_>) {
        let mut bytes = Vec::new();
        let type_id = response.encode(&mut bytes);
        self.send_raw(type_id, &bytes);
    }

    /// Sends a record of arbitrary bytes, if it fits.
    pub fn send_raw(&mut self, type_id: i32, bytes: &[u8]) {
        let _ = self.responses.transmit(type_id, bytes);
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}
