// SPDX-License-Identifier: Apache-2.0
//! Publications and subscriptions for asynchronous tasks, on any runtime.
//!
//! Messages arrive in shared memory, without an event of the operating system. A [`Reactor`] therefore checks, on a thread
//! of its own or in the application's loop, what tasks wait for, and wakes them. Tasks that do not wait cost it
//! nothing.
//!
//! Contract: an [`AsyncSubscription`] or [`AsyncPublication`] first tries the operation itself. Only if that has to wait,
//! it arms its watch with the waker of the task and what it has seen, and returns `Pending`. Each duty cycle of the
//! reactor checks the state of the armed watches in shared memory; a watch whose state has changed is disarmed and its
//! task woken. Because the state is checked, and not a change of it, no wake-up can be lost between the attempt and the
//! arming.

mod message;
mod publication;
mod reactor;
mod reconnecting;
mod subscription;
mod watch;

pub use message::Message;
pub use publication::{AsyncPublication, Offer};
pub use reactor::{Reactor, ReactorError};
pub use reconnecting::{AsyncReconnecting, IntoAsync};
pub use subscription::AsyncSubscription;
