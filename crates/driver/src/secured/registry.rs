//! Decisions about sockets that are to be opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use taran_net::AgentRole;

use super::back::ReceiverPort;
use super::forward::SenderPort;

/// Decision about the sockets with one tag.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// They are plain.
    Plain,
    /// They are those of a send endpoint.
    Sender(Arc<Mutex<SenderPort>>),
    /// They are those of a receive transport.
    Receiver(Arc<Mutex<ReceiverPort>>),
}

/// Decisions that the conductor made before it opened sockets. A socket without one carries nothing.
#[derive(Debug, Default)]
pub(super) struct Registry {
    decisions: BTreeMap<(bool, i64), Decision>,
}

impl Registry {
    const fn key(agent: AgentRole, tag: i64) -> Option<(bool, i64)> {
        match agent {
            AgentRole::Sender => Some((true, tag)),
            AgentRole::Receiver => Some((false, tag)),
            AgentRole::Conductor => None,
        }
    }

    /// Decides about the sockets that are opened for an agent with a tag.
    pub(super) fn decide(&mut self, agent: AgentRole, tag: i64, decision: Decision) {
        if let Some(key) = Self::key(agent, tag) {
            self.decisions.insert(key, decision);
        }
    }

    /// Forgets a decision: the sockets were opened, or could not be.
    pub(super) fn forget(&mut self, agent: AgentRole, tag: i64) {
        if let Some(key) = Self::key(agent, tag) {
            self.decisions.remove(&key);
        }
    }

    /// Returns the decision about a socket.
    pub(super) fn of(&self, agent: AgentRole, tag: i64) -> Option<Decision> {
        self.decisions.get(&Self::key(agent, tag)?).cloned()
    }
}
