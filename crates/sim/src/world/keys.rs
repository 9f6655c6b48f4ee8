// SPDX-License-Identifier: Apache-2.0
//! Keys of hosts with transport security: the identity of a host follows from its number.

use taran_driver::{DriverKeys, SecurityControl};
use taran_secure::Secret;
use taran_secure::identity::{Identity, public_key_text};
use taran_secure::keeper::Entropy;
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::TrustStore;

use super::{HostIndex, World};

impl World {
    /// Puts other trusted keys in force at a host with transport security: numbers of hosts, and fields of the trust file.
    ///
    /// # Panics
    /// If the host has no driver with transport security.
    pub fn set_trust(&mut self, host: HostIndex, trusted: &[(usize, &str)]) {
        let trusted: Vec<(usize, String)> = trusted
            .iter()
            .map(|(number, fields)| (*number, (*fields).to_owned()))
            .collect();
        let HostKeys { identity, trust } = of_host(host.number(), &trusted);
        assert!(self.security_control(host).set_keys(identity, trust));
    }

    /// Lets a host with transport security rotate its keys.
    ///
    /// # Panics
    /// If the host has no driver with transport security.
    pub fn rotate_keys(&mut self, host: HostIndex) {
        assert!(self.security_control(host).rotate());
    }

    fn security_control(&mut self, host: HostIndex) -> &mut SecurityControl {
        let Some(driver) = self.driver_mut(host) else {
            panic!("host {} has no driver", host.number());
        };
        match &mut driver.parts.security {
            Some((control, _)) => control,
            None => panic!("host {} secures nothing", host.number()),
        }
    }
}

/// Identity of a host, and what it trusts.
#[derive(Debug)]
pub(super) struct HostKeys {
    identity: Identity,
    trust: TrustStore,
}

/// Random bytes of a seed.
struct Seeded(fastrand::Rng);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

impl HostKeys {
    /// Returns the keys with random bytes of a seed.
    pub(super) fn seeded(self, seed: u64) -> DriverKeys {
        let entropy = Seeded(fastrand::Rng::with_seed(seed));
        DriverKeys::new(self.identity, self.trust, Box::new(entropy))
    }
}

fn identity(number: usize) -> Identity {
    // Worlds have few hosts.
    Identity::from_private::<DefaultProvider>(Secret::new([number as u8 + 1; 32]))
}

/// Returns the keys of a host that trusts other hosts: number, and fields of the trust file.
pub(super) fn of_host(number: usize, trusted: &[(usize, String)]) -> HostKeys {
    let lines: String = trusted
        .iter()
        .map(|(other, fields)| {
            let key = public_key_text::<DefaultProvider>(identity(*other).public());
            format!("{key} host{other} {fields}\n")
        })
        .collect();
    let trust = TrustStore::parse::<DefaultProvider>(&lines);
    HostKeys {
        identity: identity(number),
        trust: trust.expect("the scenario has valid fields of the trust file"),
    }
}
