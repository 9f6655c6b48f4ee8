// SPDX-License-Identifier: Apache-2.0
//! Command-and-control file `cnc.dat`, shared by the driver and its clients: a header, then the to-driver ring buffer,
//! the to-clients broadcast buffer, the counters and the error log (docs/spec/shared-memory.md §2).
//!
//! The driver initialises a new file with [`Cnc::create`], initialises the structures in its sections, and publishes it
//! with [`Cnc::publish`]. All other processes use [`Cnc::open`], which validates every value.

mod driver_lock;
mod error;
mod header;
mod spec;

pub use driver_lock::{
    DRIVER_LOCK_FILE_NAME, driver_lock_contents, driver_lock_path, with_driver_lock,
};
pub use error::CncError;
pub use header::{CNC_HEADER_LENGTH, CncHeader};
pub use spec::CncSpec;

use std::time::Duration;

use taran_core::memory::{Region, Shared};
use taran_core::sync::Ordering::{Acquire, Relaxed, Release};

/// Name of the file in the Aeron directory.
pub const CNC_FILE_NAME: &str = "cnc.dat";

/// Layout version: 0.2.0.
pub const CNC_VERSION: Version = Version::new(0, 2, 0);

/// Semantic version packed into 32 bits: one byte each for major, minor and patch.
#[doc(alias = "SemanticVersion")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i32);

impl Version {
    /// Returns a packed version.
    #[must_use]
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self(((major as i32) << 16) | ((minor as i32) << 8) | patch as i32)
    }

    /// Returns the major version, which changes with incompatible changes.
    #[must_use]
    pub const fn major(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// Returns the minor version, which changes with additions.
    #[must_use]
    pub const fn minor(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns the patch version, which changes with fixes.
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

/// Mapped `cnc.dat`, split into its sections. A clone is another view of the same memory.
#[derive(Clone, Debug)]
pub struct Cnc {
    /// Header.
    pub header: Shared<CncHeader>,
    /// Many-to-one ring buffer of commands, with its trailer.
    pub to_driver: Region,
    /// Broadcast buffer of responses, with its trailer.
    pub to_clients: Region,
    /// Counters metadata.
    pub counters_metadata: Region,
    /// Counters values.
    pub counters_values: Region,
    /// Distinct error log.
    pub error_log: Region,
    spec: CncSpec,
}

impl Cnc {
    /// Writes the header of a new file of [`CncSpec::file_length`] zero bytes, except the version. The file is not
    /// ready until [`Self::publish`].
    ///
    /// # Errors
    /// The lengths are invalid, or the region is too short.
    pub fn create(region: &Region, spec: &CncSpec) -> Result<Self, CncError> {
        let cnc = Self::split(region, spec)?;
        cnc.header.write(spec);
        Ok(cnc)
    }

    /// Opens a file that another process created.
    ///
    /// # Errors
    /// [`CncError::NotReady`] and [`CncError::TooShort`] are transient while a driver starts; the others are permanent.
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
        // Acquire: pairs with the release in `publish`, so the rest of the header is complete.
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

    /// Publishes the file. This is the last step of its creation.
    pub fn publish(&self) {
        // Release: a reader that acquires the version sees all previous stores.
        self.header.version.store(CNC_VERSION.0, Release);
    }

    /// Returns true once [`Self::publish`] was called.
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
            let part = region
                .sub(start, length)
                .map_err(|_| CncError::Damaged { section });
            start += length;
            part
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

    /// Returns the header values as of when the file was opened.
    #[must_use]
    pub fn spec(&self) -> &CncSpec {
        &self.spec
    }

    /// Returns the client liveness timeout: the maximum age of a client's heartbeat.
    #[must_use]
    pub fn client_liveness_timeout(&self) -> Duration {
        // Validated when the header was read.
        Duration::from_nanos(self.spec.client_liveness_timeout_ns.unsigned_abs())
    }
}

#[cfg(test)]
mod tests;
