use super::header::CNC_HEADER_LENGTH;

/// The numbers in the header of a `cnc.dat`. Lengths are bytes; those of the two buffers include their trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CncSpec {
    /// Command ring: a power of two and 768.
    pub to_driver_length: usize,
    /// Response broadcast: a power of two and 128.
    pub to_clients_length: usize,
    /// Descriptions of counters: four times the values.
    pub counters_metadata_length: usize,
    /// Values of counters.
    pub counters_values_length: usize,
    /// Error log.
    pub error_log_length: usize,
    /// How long the driver waits for a sign of life of a client.
    pub client_liveness_timeout_ns: i64,
    /// When the driver started, milliseconds since the epoch.
    pub start_timestamp_ms: i64,
    /// Process id of the driver.
    pub driver_pid: i64,
    /// The length of the file is a multiple of it; a power of two.
    pub page_size: i32,
}

impl Default for CncSpec {
    /// The default lengths of the protocol (`docs/spec/shared-memory.md §2.2`); 10 s liveness, pages of 4096 bytes.
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
    /// Bytes of all sections. No sum of five lengths of 31 bits overflows 64.
    pub(super) fn sections_length(&self) -> usize {
        self.to_driver_length
            + self.to_clients_length
            + self.counters_metadata_length
            + self.counters_values_length
            + self.error_log_length
    }

    /// Bytes of the file: the header and the sections, rounded up to whole pages. The protocol wants it to fit 31
    /// bits.
    #[must_use]
    pub fn file_length(&self) -> usize {
        let page_size = usize::try_from(self.page_size).unwrap_or(0).max(1);
        (CNC_HEADER_LENGTH + self.sections_length()).next_multiple_of(page_size)
    }
}
