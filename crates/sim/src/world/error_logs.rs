// SPDX-License-Identifier: Apache-2.0
//! Error logs of drivers.

use taran_core::error_log::{self, ErrorObservation};
use taran_core::memory::Storage;
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::counter::SystemCounter;

use super::{HostIndex, World};

impl World {
    /// Checks that no running driver has recorded an error, except for the advice to retry.
    ///
    /// # Panics
    /// If one has, with its errors.
    pub fn expect_no_errors(&self) {
        self.expect_no_errors_but(&[]);
    }

    /// The same, ignoring errors that contain one of these texts.
    ///
    /// # Panics
    /// If a driver has recorded another error.
    pub fn expect_no_errors_but(&self, allowed: &[&str]) {
        for host in (0..self.hosts.len()).map(HostIndex) {
            if self.has_driver(host) {
                self.expect_no_errors_of(host, allowed);
            }
        }
    }

    /// The same for the driver of one host.
    ///
    /// # Panics
    /// If it has recorded another error, or the host has no driver.
    pub fn expect_no_errors_of(&self, host: HostIndex, allowed: &[&str]) {
        let mut errors = self.error_log(host);
        errors.retain(|error| {
            let mut allowed = allowed
                .iter()
                .chain(&["found in CLOSING state, please retry"]);
            !allowed.any(|text| error.contains(text))
        });
        if !errors.is_empty() {
            panic!("host {}: errors:\n{}", host.0, errors.join("\n"));
        }
    }

    /// Checks that the error counter of a driver matches its error log.
    ///
    /// # Panics
    /// If not, or if the host has no driver.
    pub fn expect_errors_counted(&self, host: HostIndex) {
        let mut recorded = 0;
        self.read_errors(host, |error| recorded += i64::from(error.count));
        let counted = self.system(host, SystemCounter::Errors);
        assert_eq!(
            counted, recorded,
            "host {}: {counted} errors counted, {recorded} recorded",
            host.0
        );
    }

    /// Returns the entries of a driver's error log.
    ///
    /// # Panics
    /// If there is no valid `cnc.dat` on the host.
    #[must_use]
    pub fn error_log(&self, host: HostIndex) -> Vec<String> {
        let mut errors = Vec::new();
        self.read_errors(host, |error| errors.push(format!("{error:?}")));
        errors
    }

    fn read_errors(&self, host: HostIndex, mut take: impl FnMut(&ErrorObservation)) {
        let host = &self.hosts[host.0];
        let cnc = host.storage.open(&host.directory.join(CNC_FILE_NAME));
        let Some(cnc) = cnc.ok().and_then(|region| Cnc::open(&region).ok()) else {
            panic!("no cnc.dat in {}", host.directory.display());
        };
        error_log::read(&cnc.error_log, 0, |observation| take(observation));
    }
}
