// SPDX-License-Identifier: Apache-2.0
use super::header::CNC_HEADER_LENGTH;

/// Values in the header of a `cnc.dat`. Lengths are in bytes; those of the two message buffers include their trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CncSpec {
    /// Length of the to-driver ring buffer: a power of two plus 768.
    pub to_driver_length: usize,
    /// Length of the to-clients broadcast buffer: a power of two plus 128.
    pub to_clients_length: usize,
    /// Length of the counters metadata buffer: four times that of the values.
    pub counters_metadata_length: usize,
    /// Length of the counters values buffer.
    pub counters_values_length: usize,
    /// Length of the error log buffer.
    pub error_log_length: usize,
    /// Client liveness timeout: maximum age of a client's heartbeat.
    pub client_liveness_timeout_ns: i64,
    /// Start time of the driver in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Process id of the driver.
    pub driver_pid: i64,
    /// File page size, a power of two; the file length is a multiple of it.
    pub page_size: i32,
}

impl Default for CncSpec {
    /// Returns the default lengths of the protocol, a liveness timeout of 10 s and pages of 4096 bytes
    /// (docs/spec/shared-memory.md §2.2).
    fn default() -> Self {
        Self {
            to_driver_length: (1 << 20) + 768,
            to_clients_length: (1 << 20) + 128,
            counters_metadata_length: 32 << 20,
            counters_values_length: 8 << 20,
            error_log_length: 4 << 20,
            client_liveness_timeout_ns: 10_000_000_000,
            start_timestamp_ms: 0,
            driver_pid: 0,
            page_size: 4096,
        }
    }
}

impl CncSpec {
    /// Returns the total length of all sections. The sum of five 31-bit lengths cannot overflow 64 bits.
    pub(super) fn sections_length(&self) -> usize {
        self.to_driver_length
            + self.to_clients_length
            + self.counters_metadata_length
            + self.counters_values_length
            + self.error_log_length
    }

    /// Returns the length of the file: header and sections, rounded up to whole pages. The protocol requires it to fit
    /// 31 bits.
    #[must_use]
    pub fn file_length(&self) -> usize {
        let page_size = usize::try_from(self.page_size).unwrap_or(0).max(1);
        (CNC_HEADER_LENGTH + self.sections_length()).next_multiple_of(page_size)
    }
}
