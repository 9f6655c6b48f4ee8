// SPDX-License-Identifier: Apache-2.0
//! Opening and closing of sockets: addresses and ports of each host.

use std::io;
use std::net::{IpAddr, SocketAddr};

use taran_net::{NetError, SocketSpec};

use super::host::HostId;
use super::socket::Socket;
use super::state::{NetworkState, can_address};
use crate::process::Lease;

/// Ports assigned to sockets that bind port 0.
pub(super) const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Index of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketId(usize);

impl NetworkState {
    pub(super) fn open(
        &mut self,
        host: HostId,
        spec: &SocketSpec,
        lease: &Lease,
    ) -> Result<SocketId, NetError> {
        let refused = |kind: io::ErrorKind| NetError::Bind {
            address: spec.bind,
            source: kind.into(),
        };
        lease.check().map_err(|source| NetError::Open {
            bind: spec.bind,
            source,
        })?;
        if !spec.bind.ip().is_unspecified() && !self.owns(host, spec.bind.ip()) {
            return Err(refused(io::ErrorKind::AddrNotAvailable));
        }
        let mut bind = spec.bind;
        if bind.port() == 0 {
            let port = self
                .free_port(host, bind.ip())
                .ok_or_else(|| refused(io::ErrorKind::AddrInUse))?;
            bind.set_port(port);
        } else if self.is_bound(host, bind, spec.reuse_address) {
            return Err(refused(io::ErrorKind::AddrInUse));
        }
        let socket = Some(Socket::new(host, bind, spec, lease));
        let free = self.sockets.iter().position(Option::is_none);
        let index = free.unwrap_or(self.sockets.len());
        match self.sockets.get_mut(index) {
            Some(slot) => *slot = socket,
            None => self.sockets.push(socket),
        }
        Ok(SocketId(index))
    }

    pub(super) fn close(&mut self, id: SocketId) {
        self.sockets[id.0] = None;
    }

    /// Closes all sockets of a process.
    pub(super) fn close_all_of(&mut self, lease: &Lease) {
        for socket in &mut self.sockets {
            if (socket.as_ref()).is_some_and(|socket| socket.lease.is_same(lease)) {
                *socket = None;
            }
        }
    }

    /// Returns an open socket. Its transport owns the id and closes the socket on drop.
    #[expect(clippy::expect_used, reason = "ids live as long as their sockets")]
    pub(super) fn socket(&mut self, id: SocketId) -> &mut Socket {
        self.sockets[id.0]
            .as_mut()
            .expect("the socket of a transport is open")
    }

    pub(super) fn connect(
        &mut self,
        id: SocketId,
        peer: SocketAddr,
    ) -> Result<SocketAddr, NetError> {
        let (host, bind) = (self.socket(id).host, self.socket(id).bind);
        if !can_address(bind, peer) {
            return Err(NetError::Connect {
                local: bind,
                peer,
                source: io::ErrorKind::InvalidInput.into(),
            });
        }
        let local = self.source_address(host, bind, peer);
        let socket = self.socket(id);
        (socket.peer, socket.local) = (Some(peer), local);
        Ok(local)
    }

    fn is_bound(&self, host: HostId, bind: SocketAddr, reuse_address: bool) -> bool {
        let mut mine = self
            .sockets
            .iter()
            .flatten()
            .filter(|socket| socket.host == host);
        mine.any(|socket| socket.conflicts_with(bind, reuse_address))
    }

    fn free_port(&mut self, host: HostId, ip: IpAddr) -> Option<u16> {
        for _ in EPHEMERAL {
            let next = self.last_port + 1;
            self.last_port = if EPHEMERAL.contains(&next) {
                next
            } else {
                *EPHEMERAL.start()
            };
            if !self.is_bound(host, SocketAddr::new(ip, self.last_port), false) {
                return Some(self.last_port);
            }
        }
        None
    }
}
