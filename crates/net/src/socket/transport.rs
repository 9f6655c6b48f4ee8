// SPDX-License-Identifier: Apache-2.0
//! A socket as a [`Transport`].

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::receive::{receive_many, receive_one, receive_parts};
use super::segment_limiter::{BatchCursor, SegmentLimiter};
use super::send::{SocketAddresses, send_many, send_one};
use super::{open, option};
use crate::{
    Arrivals, BufferLengths, Capabilities, NetError, PollSource, ReceiveBatch, Received, Transmit,
    Transport,
};

/// One UDP socket.
#[derive(Debug)]
pub(super) struct SocketTransport {
    pub(super) socket: UdpSocket,
    /// The requested address, which may be a wildcard.
    pub(super) bind: SocketAddr,
    pub(super) addresses: SocketAddresses,
    pub(super) limiter: SegmentLimiter,
    pub(super) coalesces: bool,
    pub(super) timestamps: bool,
    /// The next call receives a vector of messages rather than one.
    pub(super) receive_vector_next: bool,
    pub(super) buffer_lengths: BufferLengths,
    pub(super) multicast_ttl: u8,
}

impl SocketTransport {
    /// Makes one call that sends messages from `cursor` on, moves `cursor` behind the accepted ones, and returns their
    /// bytes: zero if none are left or none can be accepted now.
    fn send_next(&mut self, cursor: &mut BatchCursor<'_>) -> Result<usize, NetError> {
        let mut limiter = self.limiter;
        let mut tried_again = false;
        loop {
            let mut ahead = *cursor;
            let Some(first) = ahead.next(limiter) else {
                return Ok(0);
            };
            let Some(destination) = first.destination.or(self.addresses.peer) else {
                return Err(NetError::NoDestination {
                    local: self.addresses.local,
                });
            };
            let result = if ahead.next(limiter).is_none() {
                send_one(&self.socket, self.addresses, &first).map(|()| 1)
            } else {
                send_many(&self.socket, self.addresses, *cursor, limiter)
            };
            let error = match result {
                Ok(taken) => {
                    // The send succeeded with this limit, so it is kept, even if it was reduced by a rejection above.
                    self.limiter = limiter;
                    let taken = (0..taken).filter_map(|_| cursor.next(limiter));
                    return Ok(taken.map(|message| message.payload.len()).sum());
                }
                Err(error) => error,
            };
            let refused = first
                .segment_size
                .and_then(|size| limiter.after_rejection(size, error.raw_os_error()?));
            if let Some(smaller) = refused {
                limiter = smaller;
                continue;
            }
            match Failure::of(&error) {
                Failure::TryAgainNow if !tried_again => tried_again = true,
                Failure::TryAgainNow | Failure::TryAgainLater => return Ok(0),
                Failure::Fatal if first.payload.len() > self.max_datagram() => {
                    return Err(NetError::TooLong {
                        local: self.addresses.local,
                        destination,
                        length: first.payload.len(),
                        max: self.max_datagram(),
                    });
                }
                Failure::Fatal => {
                    return Err(NetError::Send {
                        local: self.addresses.local,
                        destination,
                        length: first.payload.len(),
                        source: error,
                    });
                }
            }
        }
    }

    fn max_datagram(&self) -> usize {
        if self.bind.is_ipv4() {
            Capabilities::MAX_DATAGRAM_V4
        } else {
            Capabilities::MAX_DATAGRAM_V6
        }
    }

    /// Returns true if received messages carry control data.
    fn receives_control_data(&self) -> bool {
        self.coalesces || self.timestamps
    }

    /// Calls `receive` and returns its result, or `None` if nothing has arrived.
    fn retry_receive<T>(
        &self,
        mut receive: impl FnMut(&UdpSocket) -> io::Result<T>,
    ) -> Result<Option<T>, NetError> {
        let mut tried_again = false;
        loop {
            let error = match receive(&self.socket) {
                Ok(received) => return Ok(Some(received)),
                Err(error) => error,
            };
            match Failure::of(&error) {
                Failure::TryAgainNow if !tried_again => tried_again = true,
                Failure::TryAgainNow | Failure::TryAgainLater => return Ok(None),
                Failure::Fatal => {
                    return Err(NetError::Receive {
                        local: self.addresses.local,
                        source: error,
                    });
                }
            }
        }
    }

    /// Dissolves the association with the old peer, which may have bound a wildcard address to one interface, and
    /// connects to the new one.
    fn reconnect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        let local = SocketAddr::new(self.bind.ip(), self.addresses.local.port());
        open::disconnect(&self.socket).map_err(|source| NetError::Connect {
            local,
            peer,
            source,
        })?;
        self.addresses.peer = None;
        // A port that the system chose is lost with the association, and is bound again. A requested port remains
        // bound, and binding it again would fail.
        if open::bound_address(&self.socket)?.port() == 0 {
            open::bind(&self.socket, local)?;
        }
        self.socket
            .connect(peer)
            .map_err(|source| NetError::Connect {
                local,
                peer,
                source,
            })
    }
}

impl Transport for SocketTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let mut cursor = BatchCursor::new(batch);
        let mut accepted = 0;
        loop {
            match self.send_next(&mut cursor) {
                Ok(0) => return Ok(accepted),
                Ok(bytes) => accepted += bytes,
                Err(error) if accepted == 0 => return Err(error),
                Err(_) => return Ok(accepted),
            }
        }
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let wants_control = self.receives_control_data();
        // `recvmsg` is the fastest call for one datagram or none; `recvmmsg` pays once datagrams queue up.
        let many = std::mem::take(&mut self.receive_vector_next);
        let taken = if many {
            self.retry_receive(|socket| receive_many(socket, batch, wants_control))?
        } else {
            self.retry_receive(|socket| receive_one(socket, batch, wants_control))?
        };
        self.receive_vector_next = taken.is_some_and(|taken| taken > usize::from(many));
        Ok(batch.datagram_count())
    }

    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let wants_control = self.receives_control_data();
        self.retry_receive(|socket| receive_parts(socket, head, rest, wants_control))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        if self.socket.connect(peer).is_err() {
            self.reconnect(peer)?;
        }
        self.addresses = SocketAddresses {
            local: open::bound_address(&self.socket)?,
            peer: Some(peer),
        };
        // The MTU of the new route may differ.
        self.limiter = self.limiter.reset_for_route();
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.addresses.peer
    }

    fn path_mtu(&self) -> Option<usize> {
        let option = match self.addresses.peer? {
            SocketAddr::V4(_) => option::PATH_MTU_V4,
            SocketAddr::V6(_) => option::PATH_MTU_V6,
        };
        usize::try_from(option::get(&self.socket, option).ok()?).ok()
    }

    fn local_address(&self) -> SocketAddr {
        self.addresses.local
    }

    fn poll_source(&self) -> PollSource {
        PollSource::new(
            super::SocketNetwork::BACKEND,
            Arrivals::Descriptor(self.socket.as_raw_fd()),
        )
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_segments: self.limiter.max_segments(),
            coalesces: self.coalesces,
            receive_timestamps: self.timestamps,
            receives_parts: true,
            max_datagram: self.max_datagram(),
            backend: super::SocketNetwork::BACKEND,
            ..Capabilities::PLAIN
        }
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        open::grow_receive_buffer(&self.socket, self.bind, bytes)?;
        self.buffer_lengths = open::buffer_lengths(&self.socket)?;
        Ok(())
    }

    fn buffer_lengths(&self) -> BufferLengths {
        self.buffer_lengths
    }

    fn overflowed(&self) -> Option<u32> {
        option::drops(&self.socket).ok()
    }

    fn multicast_ttl(&self) -> u8 {
        self.multicast_ttl
    }
}

/// Meaning of a failed call. In each case, the kernel accepted nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The call was interrupted, or it reported that an earlier datagram reached a closed port (`ECONNREFUSED`), which
    /// must not cost this datagram.
    TryAgainNow,
    /// Nothing has arrived, or the send buffer is full.
    TryAgainLater,
    /// Anything else.
    Fatal,
}

impl Failure {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EINTR | libc::ECONNREFUSED) => Self::TryAgainNow,
            Some(libc::EAGAIN | libc::ENOBUFS) => Self::TryAgainLater,
            _ => Self::Fatal,
        }
    }
}
