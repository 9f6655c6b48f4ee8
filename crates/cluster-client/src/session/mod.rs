// SPDX-License-Identifier: Apache-2.0
//! A session with a cluster as a state machine without I/O: inputs are messages, the state of connections and the time; outputs are
//! connections to open, requests to send, and events.

mod attempt;
mod endpoints;
mod machine;
mod state;
#[cfg(test)]
mod tests;

pub use endpoints::{EndpointsError, IngressEndpoint, parse_endpoints};
pub use machine::{Established, LinkCommand, LinkId, Session, SessionOptions};
pub use state::{ClosedReason, ClusterEvent, ClusterState};

/// Id of a member.
pub type MemberId = i32;

/// Supplies the credentials of a client. Encodings are agreed between this and the cluster's authenticator.
pub trait Credentials {
    /// Returns the credentials that the connect request contains; empty for none.
    fn credentials(&mut self) -> Vec<u8>;

    /// Returns the answer to a challenge.
    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8>;
}

/// No credentials.
impl Credentials for () {
    fn credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

/// Credentials that are the same for each session, without an answer to challenges.
impl Credentials for Vec<u8> {
    fn credentials(&mut self) -> Vec<u8> {
        self.clone()
    }

    fn on_challenge(&mut self, _: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}
