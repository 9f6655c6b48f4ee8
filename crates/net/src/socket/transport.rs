//! A socket as a [`Transport`].

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use super::cut::{Cursor, Cut};
use super::receive::{receive_many, receive_one, receive_parts};
use super::send::{Ends, send_many, send_one};
use super::{open, option};
use crate::{BufferLengths, Capabilities, NetError, ReceiveBatch, Received, Transmit, Transport};

/// One UDP socket.
#[derive(Debug)]
pub(super) struct SocketTransport {
    pub(super) socket: UdpSocket,
    /// The address asked for, which may be a wildcard.
    pub(super) bind: SocketAddr,
    pub(super) ends: Ends,
    pub(super) cut: Cut,
    pub(super) coalesces: bool,
    pub(super) timestamps: bool,
    /// Receive as many datagrams as there are with the next call, rather than one.
    pub(super) expects_many: bool,
    pub(super) buffer_lengths: BufferLengths,
    pub(super) multicast_ttl: u8,
}

impl SocketTransport {
    /// Makes one call that sends messages from `cursor` on, moves `cursor` behind those that were taken, and returns
    /// their bytes: zero if none are left or none can be taken now.
    fn send_next(&mut self, cursor: &mut Cursor<'_>) -> Result<usize, NetError> {
        let mut cut = self.cut;
        let mut tried_again = false;
        loop {
            let mut ahead = *cursor;
            let Some(first) = ahead.next(cut) else {
                return Ok(0);
            };
            let Some(destination) = first.destination.or(self.ends.peer) else {
                return Err(NetError::NoDestination {
                    local: self.ends.local,
                });
            };
            let result = if ahead.next(cut).is_none() {
                send_one(&self.socket, self.ends, &first).map(|()| 1)
            } else {
                send_many(&self.socket, self.ends, *cursor, cut)
            };
            let error = match result {
                Ok(taken) => {
                    // If segments were refused before, what was learned from that has proved right.
                    self.cut = cut;
                    let taken = (0..taken).filter_map(|_| cursor.next(cut));
                    return Ok(taken.map(|message| message.payload.len()).sum());
                }
                Err(error) => error,
            };
            let refused = first
                .segment_size
                .and_then(|size| cut.after_refusal(size, error.raw_os_error()?));
            if let Some(smaller) = refused {
                cut = smaller;
                continue;
            }
            match Failure::of(&error) {
                Failure::TryAgainNow if !tried_again => tried_again = true,
                Failure::TryAgainNow | Failure::TryAgainLater => return Ok(0),
                Failure::Fatal => {
                    return Err(NetError::Send {
                        local: self.ends.local,
                        destination,
                        length: first.payload.len(),
                        source: error,
                    });
                }
            }
        }
    }

    /// Whether the kernel has something to say about what arrives.
    fn hears_notes(&self) -> bool {
        self.coalesces || self.timestamps
    }

    /// What a receiving call gives, or `None` if there is nothing.
    fn attempt<T>(
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
                        local: self.ends.local,
                        source: error,
                    });
                }
            }
        }
    }

    /// Dissolves the association with the old peer, which may have tied a wildcard address to one interface, and makes
    /// the new one.
    fn reconnect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        let local = SocketAddr::new(self.bind.ip(), self.ends.local.port());
        open::dissolve(&self.socket).map_err(|source| NetError::Connect {
            local,
            peer,
            source,
        })?;
        self.ends.peer = None;
        // A port that the system chose is lost with the association; a port that was asked for is still there, and binding
        // again is refused.
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
        let mut cursor = Cursor::new(batch);
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
        let notes = self.hears_notes();
        // One plain call is the quickest way to one datagram or none; a vector pays once datagrams queue up.
        let many = std::mem::take(&mut self.expects_many);
        let taken = if many {
            self.attempt(|socket| receive_many(socket, batch, notes))?
        } else {
            self.attempt(|socket| receive_one(socket, batch, notes))?
        };
        self.expects_many = taken.is_some_and(|taken| taken > usize::from(many));
        Ok(batch.datagram_count())
    }

    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let notes = self.hears_notes();
        self.attempt(|socket| receive_parts(socket, head, rest, notes))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        if self.socket.connect(peer).is_err() {
            self.reconnect(peer)?;
        }
        self.ends = Ends {
            local: open::bound_address(&self.socket)?,
            peer: Some(peer),
        };
        // Another route may have another MTU.
        self.cut = self.cut.renewed();
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.ends.peer
    }

    fn local_address(&self) -> SocketAddr {
        self.ends.local
    }

    fn raw_fd(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_segments: self.cut.max_segments(),
            coalesces: self.coalesces,
            receive_timestamps: self.timestamps,
            receives_parts: true,
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

/// What a failed call means. In each case, the kernel took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The call was interrupted, or it reported that an earlier datagram met a closed port (`ECONNREFUSED`): news of the
    /// past, which must not cost this datagram.
    TryAgainNow,
    /// Nothing there, or no room.
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
