// SPDX-License-Identifier: Apache-2.0
//! The batch interface of a datagram backend.

use std::fmt::Debug;
use std::net::SocketAddr;

use crate::{
    LayerCapabilities, NetError, PollSource, ReceiveBatch, Received, Transmit, TransmitLayout,
    TransmitScratch,
};

/// One bound, non-blocking end of a network. Opened by [`Network::open`](crate::Network::open), then moved to the agent
/// that uses it; closed on drop.
///
/// `send` and `receive` never wait and never allocate. A backend does what it can with each batch and returns exactly
/// how much was accepted; the caller offers the rest again, or leaves it to loss recovery.
pub trait Transport: Send + Debug {
    /// Sends the datagrams of `batch` in order, and returns how many bytes of it were accepted.
    ///
    /// Only whole datagrams are accepted and none is skipped, so the number of bytes identifies them. A number below
    /// the total means a full buffer or a refused connection; the rest can be offered again later. An error is returned
    /// only if nothing of the batch was accepted and the first datagram is at fault; the caller records the error and
    /// continues without that datagram. An error of a datagram behind accepted ones is returned when the rest is
    /// offered again.
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError>;

    /// Sends datagrams that `write` produces, in order, and returns how many bytes were accepted, as
    /// [`send`](Self::send) does. For layers that change bytes: a backend with memory of its own lends it, so that the
    /// bytes are written where they are sent from; others, as by default, use `scratch` and `send`.
    ///
    /// `write` is called with the index of each datagram in `layout`, in ascending order and at most once, and with
    /// memory of its length, whose old contents have no meaning. Datagrams behind the accepted ones may have been
    /// written, too; they are written again when the rest is offered again.
    fn send_with(
        &mut self,
        layout: TransmitLayout,
        scratch: &mut TransmitScratch,
        write: &mut dyn FnMut(usize, &mut [u8]),
    ) -> Result<usize, NetError> {
        let (local, peer) = (self.local_address(), self.peer());
        send_from_scratch(layout, scratch, write, local, peer, |transmit| {
            self.send(&[transmit])
        })
    }

    /// Clears `batch`, fills it with the datagrams that have arrived, and returns their number.
    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError>;

    /// Receives one datagram, or one run of datagrams, into the caller's memory: the first bytes into `head`, the
    /// remaining ones into `rest`. Together they must hold 64 KiB. Returns `None` if nothing has arrived.
    ///
    /// Supported if [`Capabilities::receives_parts`] is set; other backends always return `None`.
    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        let _ = (head, rest);
        Ok(None)
    }

    /// Makes `peer` the destination of transmits without one, and the only source from which datagrams are received.
    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError>;

    /// Returns the peer that the transport is connected to.
    fn peer(&self) -> Option<SocketAddr>;

    /// Returns the length in bytes of the longest IP packet that reaches the connected peer in one piece, as far as the
    /// system knows; `None` without a peer, or if the backend does not know.
    fn path_mtu(&self) -> Option<usize> {
        None
    }

    /// Returns the address that the transport is bound to, with the port that the system chose.
    fn local_address(&self) -> SocketAddr;

    /// Returns this transport as a [`Poller`](crate::Poller) of its network knows it.
    fn poll_source(&self) -> PollSource {
        PollSource::UNKNOWN
    }

    /// Returns the capabilities beyond single datagrams. They do not change while the transport is open, except for
    /// `max_segments`.
    fn capabilities(&self) -> Capabilities;

    /// Requests a receive buffer of at least `bytes` bytes; the system's limit may grant less. Never shrinks the
    /// buffer. Does nothing in backends with buffers of fixed length.
    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        let _ = bytes;
        Ok(())
    }

    /// Returns the lengths of the buffers that the system granted.
    fn buffer_lengths(&self) -> BufferLengths;

    /// Returns the number of arrived datagrams that were dropped, modulo 2^32: nearly always because the receive buffer
    /// was full, occasionally because of a wrong checksum. `None` if unknown.
    fn overflowed(&self) -> Option<u32> {
        None
    }

    /// Returns the hop limit of multicast datagrams as the system reports it; zero if the transport has no multicast
    /// role.
    fn multicast_ttl(&self) -> u8 {
        0
    }
}

/// Writes datagrams into `scratch` and passes them to `send`, on behalf of a transport at `local` with that peer.
pub(crate) fn send_from_scratch(
    layout: TransmitLayout,
    scratch: &mut TransmitScratch,
    write: &mut dyn FnMut(usize, &mut [u8]),
    local: SocketAddr,
    peer: Option<SocketAddr>,
    send: impl FnMut(Transmit<'_>) -> Result<usize, NetError>,
) -> Result<usize, NetError> {
    if layout.stride() <= TransmitScratch::LENGTH {
        return scratch.send(layout, write, send);
    }
    let Some(destination) = layout.destination.or(peer) else {
        return Err(NetError::NoDestination { local });
    };
    Err(NetError::TooLong {
        local,
        destination,
        length: layout.stride(),
        max: TransmitScratch::LENGTH,
    })
}

/// Capabilities of a transport, with its layers, beyond single datagrams.
///
/// ```
/// use taran_net::Capabilities;
///
/// let capabilities = Capabilities::PLAIN
///     .with_backend("ring")
///     .with_queued_sends()
///     .with_max_datagram(3_498);
/// assert_eq!(("ring", 1), (capabilities.backend, capabilities.max_segments));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Name of the backend, for reports.
    pub backend: &'static str,
    /// True if `send` only queues datagrams and [`Poller::flush`](crate::Poller::flush) transmits them: joining those of
    /// several sends into one saves no call.
    pub queues_sends: bool,
    /// The largest number of datagrams that one call passes to the kernel as one message (GSO); one without
    /// segmentation.
    pub max_segments: usize,
    /// True if arriving datagrams may be coalesced into runs (GRO).
    pub coalesces: bool,
    /// True if arriving datagrams carry a timestamp.
    pub receive_timestamps: bool,
    /// True if [`Transport::receive_parts`] receives.
    pub receives_parts: bool,
    /// Length in bytes of the longest datagram that [`Transport::send`] takes. Longer ones are errors. What the layers
    /// add ([`expansion`](Self::expansion)) is already subtracted. A path may take less.
    pub max_datagram: usize,
    /// Bytes that the layers add to each datagram on the wire.
    pub expansion: usize,
    /// True if a layer changes the bytes of datagrams. A layer may then use one key for a whole [`Transmit`], so that
    /// datagrams of different streams must not share one.
    pub transforms: bool,
}

impl Capabilities {
    /// Length in bytes of the longest UDP datagram over IPv4.
    pub const MAX_DATAGRAM_V4: usize = 65_507;

    /// Length in bytes of the longest UDP datagram over IPv6.
    pub const MAX_DATAGRAM_V6: usize = 65_527;

    /// One datagram at a time, in memory.
    pub const PLAIN: Self = Self {
        backend: "memory",
        queues_sends: false,
        max_segments: 1,
        coalesces: false,
        receive_timestamps: false,
        receives_parts: false,
        max_datagram: Self::MAX_DATAGRAM_V4,
        expansion: 0,
        transforms: false,
    };

    /// Sets the name of the backend.
    #[must_use]
    pub const fn with_backend(self, backend: &'static str) -> Self {
        Self { backend, ..self }
    }

    /// States that `send` only queues datagrams.
    #[must_use]
    pub const fn with_queued_sends(self) -> Self {
        Self {
            queues_sends: true,
            ..self
        }
    }

    /// Sets the largest number of datagrams that one call passes on as one message.
    #[must_use]
    pub const fn with_max_segments(self, max_segments: usize) -> Self {
        Self {
            max_segments,
            ..self
        }
    }

    /// Sets whether arriving datagrams may be coalesced into runs.
    #[must_use]
    pub const fn with_coalescing(self, coalesces: bool) -> Self {
        Self { coalesces, ..self }
    }

    /// Sets whether arriving datagrams carry a timestamp.
    #[must_use]
    pub const fn with_receive_timestamps(self, receive_timestamps: bool) -> Self {
        Self {
            receive_timestamps,
            ..self
        }
    }

    /// Sets whether [`Transport::receive_parts`] receives.
    #[must_use]
    pub const fn with_parts(self, receives_parts: bool) -> Self {
        Self {
            receives_parts,
            ..self
        }
    }

    /// Sets the length in bytes of the longest datagram that is sent.
    #[must_use]
    pub const fn with_max_datagram(self, max_datagram: usize) -> Self {
        Self {
            max_datagram,
            ..self
        }
    }

    /// Returns the capabilities of this transport below one more layer.
    #[must_use]
    pub fn below(self, layer: LayerCapabilities) -> Self {
        Self {
            receives_parts: self.receives_parts && !layer.inspects_received && !layer.transforms,
            max_datagram: self.max_datagram.saturating_sub(layer.expansion),
            expansion: self.expansion + layer.expansion,
            transforms: self.transforms || layer.transforms,
            ..self
        }
    }
}

/// Lengths of socket buffers in bytes, as the system reports them. (Linux reports twice the requested value, because it
/// charges its bookkeeping to the buffer.) Exhaustive, because a socket has these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLengths {
    /// `SO_SNDBUF`.
    pub send: usize,
    /// `SO_RCVBUF`.
    pub receive: usize,
}
