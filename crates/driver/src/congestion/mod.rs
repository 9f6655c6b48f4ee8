// SPDX-License-Identifier: Apache-2.0
//! Congestion control: the receiver windows of images (docs/spec/wire.md §5.7).
//!
//! Every image has a [`CongestionControl`] of its own, created by the conductor. In each poll of the image the receiver
//! calls it for a [`WindowUpdate`] and whether to measure the round-trip time, and passes on each measurement. A
//! supplier for other implementations than the two built in is set by
//! [`DriverContext::congestion_control`](crate::DriverContext::congestion_control).

mod cubic;
mod static_window;

use std::fmt::{self, Debug};

pub(crate) use cubic::{Cubic, CubicSpec};
pub(crate) use static_window::StaticWindow;

/// Result of an update by congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowUpdate {
    /// Receiver window in bytes. At most half a term is advertised, and less while the socket drops datagrams.
    pub window: i32,
    /// Send a status message now, even if the position did not change.
    pub is_urgent: bool,
}

impl WindowUpdate {
    /// Advertises a window of `bytes` with the next status message that is due.
    #[must_use]
    pub fn new(bytes: i32) -> Self {
        Self {
            window: bytes,
            is_urgent: false,
        }
    }

    /// Sends a status message now.
    #[must_use]
    pub fn urgent(self) -> Self {
        Self {
            is_urgent: true,
            ..self
        }
    }
}

/// Progress of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverProgress {
    /// Position of the slowest subscriber.
    pub consumed: i64,
    /// Position in the last status message.
    pub last_sent_position: i64,
    /// A new gap was found since the last update.
    pub has_loss: bool,
}

impl ReceiverProgress {
    /// Creates the progress of a stream without loss, for tests of a [`CongestionControl`].
    #[must_use]
    pub fn new(consumed: i64, last_sent_position: i64) -> Self {
        Self {
            consumed,
            last_sent_position,
            has_loss: false,
        }
    }

    /// States that a new gap was found.
    #[must_use]
    pub fn with_loss(self) -> Self {
        Self {
            has_loss: true,
            ..self
        }
    }
}

/// Sets the receiver window of one image. Called by the receiver thread on the hot path: methods must not block,
/// allocate or format. All times are monotonic nanoseconds.
pub trait CongestionControl: Send + Debug {
    /// Returns the initial window in bytes.
    fn initial_window(&self) -> i32;

    /// Called when the image starts to receive.
    fn start(&mut self, now_ns: i64) {
        let _ = now_ns;
    }

    /// Returns the window. Called in each poll of the image: in every duty cycle while it is active, every few
    /// milliseconds while it is idle, and if [`Self::is_constant`] returns true and it is idle, only with each status
    /// message.
    fn update_window(&mut self, progress: &ReceiverProgress, now_ns: i64) -> WindowUpdate;

    /// Returns true if the receiver should send an RTT request now. Called as often as [`Self::update_window`].
    fn should_measure_rtt(&mut self, now_ns: i64) -> bool {
        let _ = now_ns;
        false
    }

    /// Returns true if the window never changes and no round-trip time is ever measured. An idle image is then not
    /// polled between two status messages.
    fn is_constant(&self) -> bool {
        false
    }

    /// Returns the next time at which a call may have another result than the last one, if nothing was received or consumed
    /// meanwhile. By default that is each time, unless the window [is constant](Self::is_constant).
    fn next_deadline_ns(&self) -> i64 {
        if self.is_constant() {
            i64::MAX
        } else {
            i64::MIN
        }
    }

    /// Handles an RTT measurement.
    fn on_rtt_measurement(&mut self, round_trip_ns: i64, now_ns: i64) {
        let _ = (round_trip_ns, now_ns);
    }
}

/// Parameters of an image for which a congestion control is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageParams<'a> {
    /// Channel of the subscription.
    pub channel: &'a str,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Length of a term in bytes.
    pub term_length: i32,
    /// Maximum datagram length of the sender in bytes.
    pub mtu: i32,
    /// Maximum window in bytes: `rcv-wnd` or `aeron.rcv.initial.window.length`, and at most half a term.
    pub max_window: i32,
}

/// Creates the congestion control of images. If it returns `None`, the channel and the options decide.
pub(crate) struct CongestionControlSupplier(pub(crate) Box<SupplierFn>);

type SupplierFn = dyn FnMut(&ImageParams<'_>) -> Option<Box<dyn CongestionControl>> + Send;

impl fmt::Debug for CongestionControlSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CongestionControlSupplier")
    }
}
