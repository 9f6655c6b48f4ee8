// SPDX-License-Identifier: Apache-2.0
//! Ports chosen by the driver (docs/spec/wire.md §2.13), and failures to open a socket.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use taran_net::{NetError, Network, SocketSpec, Transport};

use super::super::failure::Failure;

/// Failure to open a socket.
#[derive(Debug)]
pub(crate) struct OpenError {
    /// The failure sent to the client.
    pub(crate) failure: Failure,
    /// True if the address or all ports of the range are in use, which may change.
    pub(crate) is_in_use: bool,
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        error.failure
    }
}

/// Ports for channels without a port; `None`: the system chooses.
#[doc(alias = "WildcardPortManager")]
#[derive(Debug, Clone)]
pub(super) struct PortRange {
    range: Option<RangeInclusive<u16>>,
    next: u16,
}

impl PortRange {
    pub(super) fn new(range: Option<RangeInclusive<u16>>) -> Self {
        let next = range.as_ref().map_or(0, |range| *range.start());
        Self { range, next }
    }

    /// Opens a socket on the requested port, or on the next free one of the range. Ports `in_use` by this driver are
    /// skipped, since each attempt costs the conductor several system calls.
    pub(super) fn open(
        &mut self,
        network: &mut dyn Network,
        spec: &SocketSpec,
        channel: &str,
        in_use: impl FnOnce() -> BTreeSet<u16>,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let Some(range) = self.range.clone().filter(|_| spec.bind.port() == 0) else {
            return network
                .open(spec)
                .map_err(|error| open_error(&error, channel));
        };
        let in_use = in_use();
        for _ in range.clone() {
            let port = self.next;
            self.next = if port == *range.end() {
                *range.start()
            } else {
                port + 1
            };
            if in_use.contains(&port) {
                continue;
            }
            let bind = SocketAddr::new(spec.bind.ip(), port);
            match network.open(&spec.clone().with_bind(bind)) {
                // Another process uses the port.
                Err(error) if error.is_address_in_use() => {}
                other => return other.map_err(|error| open_error(&error, channel)),
            }
        }
        let failure = Failure::generic(format!(
            "no available ports in range {} {}: make aeron.sender.wildcard.port.range or \
             aeron.receiver.wildcard.port.range wider: channel={channel}",
            range.start(),
            range.end()
        ));
        Err(OpenError {
            failure,
            is_in_use: true,
        })
    }
}

/// Returns the failure for a socket that cannot be opened, with a remedy.
pub(super) fn open_error(error: &NetError, channel: &str) -> OpenError {
    OpenError {
        failure: Failure::generic(format!("{error}{}: channel={channel}", remedy(error))),
        is_in_use: error.is_address_in_use(),
    }
}

/// Returns the remedy for an address that cannot be bound.
fn remedy(error: &NetError) -> String {
    let NetError::Bind { address, source } = error else {
        return String::new();
    };
    match source.kind() {
        io::ErrorKind::AddrInUse => format!(
            "; another socket has it, 'ss -ulpn sport = :{}' shows its process: use another port, or stop that process",
            address.port()
        ),
        io::ErrorKind::AddrNotAvailable => {
            "; use an address of this machine, 'ip address' lists them".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "; use a port from 1024 on, or give the driver the capability CAP_NET_BIND_SERVICE"
                .to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_error_bind_failure_contains_remedy() {
        for (kind, parts) in [
            (
                io::ErrorKind::AddrInUse,
                ["10.0.0.1:40123", "sport = :40123", "another port"],
            ),
            (
                io::ErrorKind::AddrNotAvailable,
                ["10.0.0.1:40123", "this machine", "ip address"],
            ),
            (
                io::ErrorKind::PermissionDenied,
                ["10.0.0.1:40123", "1024", "CAP_NET_BIND_SERVICE"],
            ),
        ] {
            let address = SocketAddr::from(([10, 0, 0, 1], 40_123));
            let source = kind.into();
            let error = open_error(&NetError::Bind { address, source }, "aeron:udp?...");
            for part in parts.iter().chain(&["channel=aeron:udp?..."]) {
                assert!(error.failure.text.contains(part), "{error:?}");
            }
            assert_eq!(error.is_in_use, kind == io::ErrorKind::AddrInUse);
        }
    }
}
