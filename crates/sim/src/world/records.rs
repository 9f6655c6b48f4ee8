//! What drivers have recorded.

use taran_core::error_log::{self, ErrorObservation};
use taran_core::memory::Storage;
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::counter::SystemCounter;

use super::{HostIndex, World};

impl World {
    /// Checks that no driver that lives has recorded an error, but for the advice to ask again.
    ///
    /// # Panics
    /// If one has, with what it recorded.
    pub fn expect_no_errors(&self) {
        self.expect_no_errors_but(&[]);
    }

    /// The same, and errors that contain one of these texts are none.
    ///
    /// # Panics
    /// If a driver has recorded another one.
    pub fn expect_no_errors_but(&self, allowed: &[&str]) {
        for host in (0..self.hosts.len()).map(HostIndex) {
            if self.has_driver(host) {
                self.expect_no_errors_of(host, allowed);
            }
        }
    }

    /// The same of the driver of one host.
    ///
    /// # Panics
    /// If it has recorded another one, or has none.
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

    /// Checks that a driver has counted the errors that it has recorded.
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

    /// What a driver has recorded in its error log.
    ///
    /// # Panics
    /// If there is no sound `cnc.dat` on the host.
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
