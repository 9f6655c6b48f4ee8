// SPDX-License-Identifier: Apache-2.0
//! The session layer: a state machine for acceptor and initiator (`docs/spec/fix-gateway.md` §3).
//!
//! [`Session`] is the machine. Its inputs are bytes of the connection, messages of the application, results of
//! authentication, stored messages and the time; its results go to an [`Output`]. The numbers of a session outlive its
//! connections. [`first_message`] tells whose session a new connection wants.

mod config;
mod emit;
mod event;
mod inbound;
mod logon;
mod machine;
mod number;
mod resend;
mod schedule;
mod throttle;
mod timer;

pub use config::{
    CancelOn, Config, ConfigError, MissingOrig, NextExpected, Now, Numbers, Profile, Role,
    ThrottleAction, ThrottleLimit,
};
pub use event::{
    Application, DisconnectReason, Event, Inbound, Outbound, Output, SendError, Sent, Stored,
};
pub use inbound::{First, first_message};
pub use logon::Authentication;
pub use machine::{Session, State};
pub use schedule::{Day, Schedule};
