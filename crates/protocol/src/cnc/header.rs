// SPDX-License-Identifier: Apache-2.0
use taran_core::memory::Padding;
use taran_core::overlay;
use taran_core::sync::Ordering::Relaxed;
use taran_core::sync::{AtomicI32, AtomicI64};

use super::{CncError, CncSpec};

/// Length of the header, which precedes the first section, in bytes.
pub const CNC_HEADER_LENGTH: usize = 128;

overlay! {
    /// Header of the CnC file. All fields except the version are written before it and never change
    /// (docs/spec/shared-memory.md §2.1).
    #[doc(alias = "CncFileDescriptor")]
    pub struct CncHeader: 128 {
        /// Layout version, written last; 0 until then.
        0 => version: AtomicI32,
        /// Length of the to-driver ring buffer, including its trailer.
        4 => to_driver_length: AtomicI32,
        /// Length of the to-clients broadcast buffer, including its trailer.
        8 => to_clients_length: AtomicI32,
        /// Length of the counters metadata buffer.
        12 => counters_metadata_length: AtomicI32,
        /// Length of the counters values buffer.
        16 => counters_values_length: AtomicI32,
        /// Length of the error log buffer.
        20 => error_log_length: AtomicI32,
        /// Client liveness timeout: maximum age of a client's heartbeat.
        24 => client_liveness_timeout_ns: AtomicI64,
        /// Start time of the driver in milliseconds since the epoch.
        32 => start_timestamp_ms: AtomicI64,
        /// Process id of the driver.
        40 => driver_pid: AtomicI64,
        /// File page size; 0, as older drivers write, means 4096.
        48 => page_size: AtomicI32,
        52 => padding_52: Padding<76>,
    }
}

/// Page size of drivers that leave the field 0.
const LEGACY_PAGE_SIZE: i32 = 4096;

impl CncHeader {
    pub(super) fn write(&self, spec: &CncSpec) {
        // Every section is shorter than the file, whose length fits an i32.
        self.to_driver_length
            .store(spec.to_driver_length as i32, Relaxed);
        self.to_clients_length
            .store(spec.to_clients_length as i32, Relaxed);
        self.counters_metadata_length
            .store(spec.counters_metadata_length as i32, Relaxed);
        self.counters_values_length
            .store(spec.counters_values_length as i32, Relaxed);
        self.error_log_length
            .store(spec.error_log_length as i32, Relaxed);
        self.client_liveness_timeout_ns
            .store(spec.client_liveness_timeout_ns, Relaxed);
        self.start_timestamp_ms
            .store(spec.start_timestamp_ms, Relaxed);
        self.driver_pid.store(spec.driver_pid, Relaxed);
        self.page_size.store(spec.page_size, Relaxed);
    }

    pub(super) fn read(&self) -> Result<CncSpec, CncError> {
        let length = |field: &'static str, value: &AtomicI32| {
            let value = value.load(Relaxed);
            usize::try_from(value).map_err(|_| CncError::Negative {
                field,
                value: value.into(),
            })
        };
        let client_liveness_timeout_ns = self.client_liveness_timeout_ns.load(Relaxed);
        if client_liveness_timeout_ns < 0 {
            return Err(CncError::Negative {
                field: "client liveness timeout",
                value: client_liveness_timeout_ns,
            });
        }
        let page_size = match self.page_size.load(Relaxed) {
            0 => LEGACY_PAGE_SIZE,
            size if size > 0 && size.count_ones() == 1 => size,
            size => return Err(CncError::PageSize(size)),
        };
        Ok(CncSpec {
            to_driver_length: length("to-driver buffer length", &self.to_driver_length)?,
            to_clients_length: length("to-clients buffer length", &self.to_clients_length)?,
            counters_metadata_length: length(
                "counters metadata length",
                &self.counters_metadata_length,
            )?,
            counters_values_length: length("counters values length", &self.counters_values_length)?,
            error_log_length: length("error log length", &self.error_log_length)?,
            client_liveness_timeout_ns,
            start_timestamp_ms: self.start_timestamp_ms.load(Relaxed),
            driver_pid: self.driver_pid.load(Relaxed),
            page_size,
        })
    }
}
