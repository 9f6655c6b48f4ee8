//! How much a receiver lets the sender run ahead (docs/spec/wire.md §5.7).
//!
//! Every image has a [`CongestionControl`] of its own. The conductor makes it, the receiver asks it: once per duty cycle
//! for its [`WindowUpdate`], once whether to measure the round trip, and it hears of each measurement. Whoever wants another
//! than the two built in hands a supplier to [`DriverContext::congestion_control`](crate::DriverContext::congestion_control).

mod cubic;
mod static_window;

use std::fmt::{self, Debug};

pub(crate) use cubic::{Cubic, CubicSpec};
pub(crate) use static_window::StaticWindow;

/// What congestion control wants told to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUpdate {
    /// Receiver window in bytes. At most half a term is last_sent_position, and less while the socket loses what it has no room for.
    pub window: i32,
    /// Tell it now, whether or not the position moved.
    pub is_urgent: bool,
}

/// How the stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverProgress {
    /// Position of the slowest subscriber.
    pub consumed: i64,
    /// Position that the sender was last told.
    pub last_sent_position: i64,
    /// A new gap was found since the last time.
    pub has_loss: bool,
}

/// Sets the receiver window of one image. It is used by the receiver's thread, on the road: no method may wait,
/// allocate or format. All times are monotonic nanoseconds.
pub trait CongestionControl: Send + Debug {
    /// The window before anything is known, in bytes.
    fn initial_window(&self) -> i32;

    /// The image takes data from now on.
    fn start(&mut self, now_ns: i64) {
        let _ = now_ns;
    }

    /// Whenever the image has a turn: in each duty cycle while something happens, every few milliseconds while nothing
    /// does, and if it is constant, not before the next status message then.
    fn update_window(&mut self, progress: &ReceiverProgress, now_ns: i64) -> WindowUpdate;

    /// True if the sender should be asked for a round trip now; asked as often.
    fn should_measure_rtt(&mut self, now_ns: i64) -> bool {
        let _ = now_ns;
        false
    }

    /// True if it always gives the same update and never asks for a round trip: then an image on which nothing happens
    /// is left alone between two status messages.
    fn is_constant(&self) -> bool {
        false
    }

    /// A round trip took so long.
    fn on_rtt_measurement(&mut self, round_trip_ns: i64, now_ns: i64) {
        let _ = (round_trip_ns, now_ns);
    }
}

/// The image that a congestion control is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageParams<'a> {
    /// Channel of the subscription.
    pub channel: &'a str,
    /// Session.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// Length of a term in bytes.
    pub term_length: i32,
    /// The sender's largest datagram in bytes.
    pub mtu: i32,
    /// The largest window in bytes: `rcv-wnd` or `aeron.rcv.initial.window.length`, and at most half a term.
    pub max_window: i32,
}

/// Makes the congestion control of images; `None` leaves an image to what its channel and the options say.
pub(crate) struct CongestionControlSupplier(pub(crate) Box<SupplierFn>);

type SupplierFn = dyn FnMut(&ImageParams<'_>) -> Option<Box<dyn CongestionControl>> + Send;

impl fmt::Debug for CongestionControlSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CongestionControlSupplier")
    }
}
