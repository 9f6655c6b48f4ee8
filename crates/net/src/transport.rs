//! The batch interface of a datagram backend.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use crate::{NetError, ReceiveBatch, Received, Transmit};

/// One bound, non-blocking end of a network. Opened by [`Network::open`](crate::Network::open), then moved to the agent
/// that uses it; closed on drop.
///
/// `send` and `receive` never wait and never allocate. A backend does what it can with each batch and says exactly how
/// far it came; the caller offers the rest again, or leaves it to loss recovery.
pub trait Transport: Send + Debug {
    /// Sends the datagrams of `batch` in order, and returns how many bytes of it were accepted.
    ///
    /// Only whole datagrams are accepted and none is skipped, so the number of bytes says which. Less than all bytes
    /// means a full buffer or a refused connection, and in both cases: try the rest again later. An error is returned only
    /// when nothing of the batch was accepted and the first datagram is at fault; the caller records it and goes on
    /// without that datagram. An error behind accepted datagrams shows when the rest is offered again.
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError>;

    /// Forgets what `batch` holds, fills it with what has arrived, and returns the number of datagrams.
    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError>;

    /// Receives one datagram, or one train, into memory of the caller's: the first bytes into `head`, what is more into
    /// `rest`. Together they hold 64 KiB. `None`: nothing has arrived.
    ///
    /// Only where [`Capabilities::receives_parts`] says so. Elsewhere nothing is ever received in this way.
    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let _ = (head, rest);
        Ok(None)
    }

    /// Makes `peer` the destination of transmits that name none, and the only source that is heard from now on.
    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError>;

    /// The peer that the transport is connected to.
    fn peer(&self) -> Option<SocketAddr>;

    /// The address that the transport is bound to, with the port that the system chose.
    fn local_address(&self) -> SocketAddr;

    /// A descriptor that becomes readable when datagrams arrive, for [`wait`](crate::wait). `None` where there is none.
    fn raw_fd(&self) -> Option<RawFd> {
        None
    }

    /// What the backend can do beyond single datagrams.
    fn capabilities(&self) -> Capabilities;

    /// Asks for a receive buffer of at least so many bytes, of which the system's limit may leave less. What is there
    /// already is kept. Where buffers are of one length for ever, nothing happens.
    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        let _ = bytes;
        Ok(())
    }

    /// The lengths of the buffers that the system granted.
    fn buffer_lengths(&self) -> BufferLengths;

    /// How many datagrams arrived and were thrown away, modulo 2^32: nearly always because the receive buffer was full, now
    /// and then because one was damaged. `None` where that is not known.
    fn overflowed(&self) -> Option<u32> {
        None
    }

    /// The hop limit of multicast datagrams as the system reports it; zero where the transport has no multicast role.
    fn multicast_ttl(&self) -> u8 {
        0
    }
}

/// What a backend can do beyond single datagrams. For reports and tests: a caller need not look, but for
/// [`receives_parts`](Self::receives_parts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The number of datagrams of a train that travel in one call without being cut up before; one if none do.
    pub max_segments: usize,
    /// True if arriving datagrams may be handed over as trains.
    pub coalesces: bool,
    /// True if arriving datagrams carry a timestamp.
    pub receive_timestamps: bool,
    /// True if [`Transport::receive_parts`] receives.
    pub receives_parts: bool,
}

impl Capabilities {
    /// One datagram at a time.
    pub const PLAIN: Self = Self {
        max_segments: 1,
        coalesces: false,
        receive_timestamps: false,
        receives_parts: false,
    };
}

/// Lengths of socket buffers in bytes, as the system reports them. (Linux reports twice what was asked for, because it
/// charges its own bookkeeping to the buffer.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLengths {
    /// `SO_SNDBUF`.
    pub send: usize,
    /// `SO_RCVBUF`.
    pub receive: usize,
}
