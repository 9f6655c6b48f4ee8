//! `cnc.dat`, the file in which clients and driver meet (`docs/spec/shared-memory.md §2`): a header, then the command ring, the response
//! broadcast, the counters and the error log.
//!
//! The driver fills a new file with [`Cnc::create`], starts what lives in its sections, and makes it public with
//! [`Cnc::publish`]. Everyone else uses [`Cnc::open`], which believes nothing that it has not checked.

mod error;
mod header;
mod spec;

pub use error::CncError;
pub use header::{CNC_HEADER_LENGTH, CncHeader};
pub use spec::CncSpec;

use std::time::Duration;

use taran_core::memory::{Region, Shared};
use taran_core::sync::Ordering::{Acquire, Relaxed, Release};

/// Name of the file in the Aeron directory.
pub const CNC_FILE_NAME: &str = "cnc.dat";

/// Version of the layout: 0.2.0.
pub const CNC_VERSION: Version = Version::new(0, 2, 0);

/// A semantic version, packed into 32 bits: major, minor, patch, a byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i32);

impl Version {
    /// Packs a version; each part is at most 255.
    #[must_use]
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self(((major as i32) << 16) | ((minor as i32) << 8) | patch as i32)
    }

    /// Changes when old programs can not go on.
    #[must_use]
    pub const fn major(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// Changes when something is added.
    #[must_use]
    pub const fn minor(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Changes when something is mended.
    #[must_use]
    pub const fn patch(self) -> u8 {
        self.0 as u8
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.patch())
    }
}

/// A mapped `cnc.dat`, cut into its sections. A clone is another view of the same memory.
#[derive(Clone, Debug)]
pub struct Cnc {
    /// The header.
    pub header: Shared<CncHeader>,
    /// Many-to-one ring of commands, with its trailer.
    pub to_driver: Region,
    /// Broadcast of responses, with its trailer.
    pub to_clients: Region,
    /// Descriptions of counters.
    pub counters_metadata: Region,
    /// Values of counters.
    pub counters_values: Region,
    /// Distinct errors of the driver.
    pub error_log: Region,
    spec: CncSpec,
}

impl Cnc {
    /// Fills the header of a new file of [`CncSpec::file_length`] zero bytes, all but the version: until
    /// [`Self::publish`] the file counts as unfinished.
    ///
    /// # Errors
    /// The lengths do not make a file, or the region is shorter.
    pub fn create(region: &Region, spec: &CncSpec) -> Result<Self, CncError> {
        let cnc = Self::split(region, spec)?;
        cnc.header.write(spec);
        Ok(cnc)
    }

    /// Opens a file that somebody else made.
    ///
    /// # Errors
    /// [`CncError::NotReady`] and [`CncError::TooShort`] can pass while a driver starts; the others can not.
    pub fn open(region: &Region) -> Result<Self, CncError> {
        if region.len() < CNC_HEADER_LENGTH {
            return Err(CncError::TooShort {
                length: region.len(),
                needed: CNC_HEADER_LENGTH,
            });
        }
        let header = region
            .overlay::<CncHeader>(0)
            .map_err(|_| CncError::Damaged { section: "header" })?;
        // Acquire: pairs with the release in `publish`; the rest of the header is complete.
        let found = Version(header.version.load(Acquire));
        if found.0 == 0 {
            return Err(CncError::NotReady);
        }
        if found.major() != CNC_VERSION.major() || found.minor() < CNC_VERSION.minor() {
            return Err(CncError::Version {
                found,
                expected: CNC_VERSION,
            });
        }
        Self::split(region, &header.read()?)
    }

    /// Makes the file public. The last step of its creation.
    pub fn publish(&self) {
        // Release: who acquires the version sees everything that was stored before.
        self.header.version.store(CNC_VERSION.0, Release);
    }

    /// True once [`Self::publish`] was called.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.header.version.load(Relaxed) != 0
    }

    fn split(region: &Region, spec: &CncSpec) -> Result<Self, CncError> {
        let needed = CNC_HEADER_LENGTH + spec.sections_length();
        if region.len() < needed {
            return Err(CncError::TooShort {
                length: region.len(),
                needed,
            });
        }
        let mut start = CNC_HEADER_LENGTH;
        let mut section = |length: usize, section: &'static str| {
            let cut = region
                .sub(start, length)
                .map_err(|_| CncError::Damaged { section });
            start += length;
            cut
        };
        Ok(Self {
            to_driver: section(spec.to_driver_length, "to-driver buffer")?,
            to_clients: section(spec.to_clients_length, "to-clients buffer")?,
            counters_metadata: section(spec.counters_metadata_length, "counters metadata")?,
            counters_values: section(spec.counters_values_length, "counters values")?,
            error_log: section(spec.error_log_length, "error log")?,
            header: region
                .overlay(0)
                .map_err(|_| CncError::Damaged { section: "header" })?,
            spec: *spec,
        })
    }

    /// The header's numbers as they were when the file was opened.
    #[must_use]
    pub fn spec(&self) -> &CncSpec {
        &self.spec
    }

    /// How long the driver waits for a sign of life of a client.
    #[must_use]
    pub fn client_liveness_timeout(&self) -> Duration {
        // Checked when the header was read.
        Duration::from_nanos(self.spec.client_liveness_timeout_ns.unsigned_abs())
    }
}

#[cfg(test)]
mod tests;
