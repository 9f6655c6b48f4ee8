// SPDX-License-Identifier: Apache-2.0
//! `cnc.dat` and the loss report, created at start in the order on which clients rely (docs/spec/shared-memory.md
//! §2.4).

use std::sync::Arc;
use std::time::Duration;

use taran_core::broadcast::Transmitter;
use taran_core::clock::Now;
use taran_core::counters::{CounterSpec, CounterTable};
use taran_core::memory::{CreateOptions, LockFile, Region, Storage};
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_protocol::cnc::{
    CNC_FILE_NAME, Cnc, CncSpec, Version, driver_lock_contents, driver_lock_path,
};
use taran_protocol::counter::{SystemCounter, SystemLabels, type_id};

use super::directory::{LOSS_REPORT_FILE, StartupGuard, failed};
use crate::conductor::SystemCounters;
use crate::context::Settings;
use crate::error::DriverError;

/// Aeron version that this driver implements; published in system counter 34.
pub(crate) const AERON_VERSION: Version = Version::new(1, 51, 0);
/// Version of the protocol between client and driver; published in system counter 43.
const CONTROL_PROTOCOL_VERSION: Version = Version::new(1, 0, 0);

/// Files that a driver creates at start.
pub(crate) struct Files {
    /// Held for the life of the driver.
    pub(crate) lock: LockFile,
    /// The mapping of all of `cnc.dat`.
    pub(crate) region: Region,
    pub(crate) cnc: Cnc,
    pub(crate) commands: Consumer,
    pub(crate) correlation_ids: Producer,
    pub(crate) replies: Transmitter,
    pub(crate) loss_report: Region,
    /// Deletes the files unless it is disarmed after a successful start.
    pub(crate) startup_guard: StartupGuard,
}

impl Files {
    /// Creates the lock file, `cnc.dat` without its version, the command ring with a heartbeat, and the loss report
    /// (docs/spec/shared-memory.md §2.4).
    pub(crate) fn create(
        storage: &Arc<dyn Storage>,
        settings: &Settings,
        now: Now,
        pid: i64,
    ) -> Result<Self, DriverError> {
        let buffers = &settings.buffers;
        let spec = CncSpec {
            to_driver_length: buffers.to_driver,
            to_clients_length: buffers.to_clients,
            counters_metadata_length: buffers.counter_values * 4,
            counters_values_length: buffers.counter_values,
            error_log_length: buffers.error_log,
            client_liveness_timeout_ns: settings.timers.client_liveness_ns,
            start_timestamp_ms: now.epoch_millis,
            driver_pid: pid,
            page_size: settings.file_page_size,
        };
        let directory = &settings.directory.path;
        check_space(storage.as_ref(), settings, spec.file_length() as u64)?;
        let lock_path = driver_lock_path(directory);
        let lock = storage
            .create_locked(&lock_path, driver_lock_contents(&spec).as_bytes())
            .map_err(failed("create", &lock_path))?;
        // From here on the files in the directory belong to this driver.
        let startup_guard = StartupGuard::new(storage, directory);
        let region = storage.create(
            &directory.join(CNC_FILE_NAME),
            spec.file_length() as u64,
            CreateOptions::RESERVED,
        )?;
        let cnc = Cnc::create(&region, &spec).map_err(|error| unusable("the header", &error))?;
        let commands =
            Consumer::open(&cnc.to_driver).map_err(|error| unusable("the command ring", &error))?;
        let correlation_ids =
            Producer::open(&cnc.to_driver).map_err(|error| unusable("the command ring", &error))?;
        let replies = Transmitter::open(&cnc.to_clients)
            .map_err(|error| unusable("the response buffer", &error))?;
        // Correlation ids start at 1, because 0 means "none" in several places.
        commands.next_correlation_id();
        commands.set_heartbeat_ms(now.epoch_millis);
        let loss_report = storage.create(
            &directory.join(LOSS_REPORT_FILE),
            buffers.loss_report as u64,
            CreateOptions::RESERVED,
        )?;
        Ok(Self {
            lock,
            region,
            cnc,
            commands,
            correlation_ids,
            replies,
            loss_report,
            startup_guard,
        })
    }

    /// Creates the counters table and allocates the system counters, which come first and in order.
    pub(crate) fn counters(
        &self,
        settings: &Settings,
        labels: &SystemLabels<'_>,
        now: Now,
    ) -> Result<(CounterTable, SystemCounters), DriverError> {
        let mut table = CounterTable::new(
            self.cnc.counters_metadata.clone(),
            self.cnc.counters_values.clone(),
            Duration::from_nanos(settings.timers.counter_free_to_reuse_ns.unsigned_abs()),
        );
        let mut system = Vec::with_capacity(SystemCounter::ALL.len());
        for counter in SystemCounter::ALL {
            let value = match counter {
                SystemCounter::AeronVersion => i64::from(AERON_VERSION.0),
                SystemCounter::ControlProtocolVersion => i64::from(CONTROL_PROTOCOL_VERSION.0),
                SystemCounter::BytesCurrentlyMapped => {
                    (self.region.len() + self.loss_report.len()) as i64
                }
                _ => 0,
            };
            let spec = CounterSpec {
                type_id: type_id::SYSTEM,
                key: &counter.key(),
                label: &counter.label(labels),
                registration_id: i64::from(counter.id()),
                owner_id: -1,
                reference_id: 0,
                value,
            };
            let counter = table
                .allocate_with(&spec, now.epoch_millis)
                .map_err(|full| DriverError::Cnc {
                    what: "the system counters",
                    reason: full.to_string(),
                })?;
            system.push(counter);
        }
        Ok((table, SystemCounters(system)))
    }
}

/// Checks the space for all files at once, so that the error states how much is needed in total.
fn check_space(
    storage: &dyn Storage,
    settings: &Settings,
    cnc_length: u64,
) -> Result<(), DriverError> {
    let directory = &settings.directory.path;
    let requested = cnc_length + settings.buffers.loss_report as u64;
    match storage.available(directory) {
        Ok(available) if available < requested => Err(DriverError::Space {
            directory: directory.clone(),
            shortage: storage.insufficient_space(directory, requested),
            counters: settings.buffers.counter_values,
        }),
        // If the file system does not report its free space, reserving the pages decides.
        _ => Ok(()),
    }
}

fn unusable(what: &'static str, error: &dyn std::fmt::Display) -> DriverError {
    DriverError::Cnc {
        what,
        reason: error.to_string(),
    }
}
