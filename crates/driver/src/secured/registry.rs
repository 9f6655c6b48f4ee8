// SPDX-License-Identifier: Apache-2.0
//! Decisions about sockets that are to be opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use taran_net::AgentRole;

use super::back::ReceiverPort;
use super::forward::SenderPort;
use super::neighbors::ResolverPort;

/// Decision about the sockets with one tag.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// They are plain.
    Plain,
    /// They are those of a send endpoint.
    Sender(Arc<Mutex<SenderPort>>),
    /// They are those of a receive transport.
    Receiver(Arc<Mutex<ReceiverPort>>),
    /// It is that of name resolution.
    Resolver(Arc<Mutex<ResolverPort>>),
}

/// Decisions that the conductor made before it opened sockets. A socket without one carries nothing.
#[derive(Debug, Default)]
pub(super) struct Registry {
    decisions: BTreeMap<(u8, i64), Decision>,
}

/// Returns a number that orders agents.
const fn number(agent: AgentRole) -> u8 {
    match agent {
        AgentRole::Conductor => 0,
        AgentRole::Sender => 1,
        AgentRole::Receiver => 2,
    }
}

impl Registry {
    /// Decides about the sockets that are opened for an agent with a tag.
    pub(super) fn decide(&mut self, agent: AgentRole, tag: i64, decision: Decision) {
        self.decisions.insert((number(agent), tag), decision);
    }

    /// Forgets a decision: the sockets were opened, or could not be.
    pub(super) fn forget(&mut self, agent: AgentRole, tag: i64) {
        self.decisions.remove(&(number(agent), tag));
    }

    /// Returns the decision about a socket.
    pub(super) fn of(&self, agent: AgentRole, tag: i64) -> Option<Decision> {
        self.decisions.get(&(number(agent), tag)).cloned()
    }
}
