// SPDX-License-Identifier: Apache-2.0
//! Stateless proof of a source address (docs/spec/transport-security.md §2.6).

use std::net::SocketAddr;

use super::SECOND;
use crate::derive::first;
use crate::provider::Provider;
use crate::secret::{Secret, equal};

const MINUTE: u64 = 60 * SECOND;

/// Maker of cookies. A cookie is valid in the minute it was made in and in the next one.
#[derive(Debug)]
pub(crate) struct CookieMaker {
    /// Secrets of the present and of the previous period of two minutes.
    secrets: [Secret; 2],
    period: u64,
}

impl CookieMaker {
    pub(crate) fn new(secret: Secret) -> Self {
        Self {
            secrets: [secret.clone(), secret],
            period: 0,
        }
    }

    /// Changes the secret if it is due.
    pub(crate) fn rotate(&mut self, now: u64, draw: impl FnOnce() -> Secret) {
        let period = now / (2 * MINUTE);
        if period > self.period {
            let secret = draw();
            let previous = std::mem::replace(&mut self.secrets[0], secret);
            self.secrets[1] = previous;
            self.period = period;
        }
    }

    /// Returns a cookie for an address and the link id of an INIT.
    pub(crate) fn make<P: Provider>(&self, now: u64, source: SocketAddr, link_id: u64) -> [u8; 24] {
        cookie::<P>(&self.secrets[0], now / MINUTE, source, link_id)
    }

    /// Returns true if a cookie proves an address.
    pub(crate) fn is_valid<P: Provider>(
        &self,
        now: u64,
        source: SocketAddr,
        link_id: u64,
        given: &[u8; 24],
    ) -> bool {
        let minute = u64::from_le_bytes(*given.first_chunk().expect("24 bytes have 8"));
        let present = now / MINUTE;
        if minute > present || minute + 1 < present {
            return false;
        }
        self.secrets
            .iter()
            .any(|secret| equal(&cookie::<P>(secret, minute, source, link_id), given))
    }
}

fn cookie<P: Provider>(secret: &Secret, minute: u64, source: SocketAddr, link_id: u64) -> [u8; 24] {
    let ip = match source {
        SocketAddr::V4(source) => source.ip().to_ipv6_mapped().octets(),
        SocketAddr::V6(source) => source.ip().octets(),
    };
    let port = source.port().to_le_bytes();
    let (link_id, minute) = (link_id.to_le_bytes(), minute.to_le_bytes());
    let mac = P::hmac_sha256(secret.expose(), &[&ip, &port, &link_id, &minute]);
    let mut cookie = [0; 24];
    cookie[..8].copy_from_slice(&minute);
    cookie[8..].copy_from_slice(&first::<16>(&mac));
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::DefaultProvider;

    #[test]
    fn cookie_is_valid_for_its_address_link_and_time_only() {
        let mut maker = CookieMaker::new(Secret::new([1; 32]));
        let source: SocketAddr = "10.0.0.1:5000".parse().unwrap();
        let now = 7 * MINUTE;
        maker.rotate(now, || Secret::new([2; 32]));
        let cookie = maker.make::<DefaultProvider>(now, source, 9);
        let valid = |maker: &CookieMaker, now, source: &str, link_id, cookie: &[u8; 24]| {
            maker.is_valid::<DefaultProvider>(now, source.parse().unwrap(), link_id, cookie)
        };
        assert!(valid(&maker, now, "10.0.0.1:5000", 9, &cookie));
        assert!(!valid(&maker, now, "10.0.0.2:5000", 9, &cookie));
        assert!(!valid(&maker, now, "10.0.0.1:5001", 9, &cookie));
        assert!(!valid(&maker, now, "10.0.0.1:5000", 8, &cookie));
        for bit in 0..192 {
            let mut forged = cookie;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !valid(&maker, now, "10.0.0.1:5000", 9, &forged),
                "bit {bit}"
            );
        }
        maker.rotate(8 * MINUTE, || Secret::new([3; 32]));
        assert!(valid(&maker, 8 * MINUTE, "10.0.0.1:5000", 9, &cookie));
        assert!(!valid(&maker, 9 * MINUTE, "10.0.0.1:5000", 9, &cookie));
        assert!(!valid(&maker, 6 * MINUTE, "10.0.0.1:5000", 9, &cookie));
    }
}
