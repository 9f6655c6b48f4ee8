// SPDX-License-Identifier: Apache-2.0
//! Idle strategies: how an agent's thread waits after a duty cycle without work.
//!
//! Contract: after each duty cycle the thread calls [`IdleStrategy::idle`] once with the amount of
//! work done. With work the strategy returns at once. Without, it may spin, yield, or wait
//! through the `park` function, which may return early when work arrives. A strategy waits only through `park`.

mod adaptive;
mod args;
mod backoff;
mod controllable;
mod simple;
mod spec;

use std::fmt::Debug;
use std::time::Duration;

pub use adaptive::{Adaptive, AdaptiveLimits};
pub use backoff::{Backoff, BackoffLimits};
pub use controllable::Controllable;
pub use simple::{NoOp, Sleep, Spin, Yield};
pub use spec::{IdleError, IdleSpec, parse};

/// Decides how a thread waits for work.
pub trait IdleStrategy: Send + Debug {
    /// To be called once after each duty cycle with the work it did; `park` waits for at most the
    /// given time. Outside an agent, `park` can be `&mut std::thread::sleep`.
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration));

    /// Forgets the idle cycles so far, as if work had been done.
    fn reset(&mut self) {}
}

impl<I: IdleStrategy + ?Sized> IdleStrategy for Box<I> {
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration)) {
        (**self).idle(work, park);
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}
