// SPDX-License-Identifier: Apache-2.0
//! Control of a running driver's keys.

use std::fmt;

use taran_core::queue;
use taran_secure::identity::Identity;
use taran_secure::trust::TrustStore;

use super::security::SecurityCommand;

/// Handle to the keys of a driver. The conductor takes its commands in the next duty cycle.
pub struct SecurityControl {
    commands: queue::Sender<SecurityCommand>,
}

impl fmt::Debug for SecurityControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SecurityControl")
            .finish_non_exhaustive()
    }
}

impl SecurityControl {
    pub(crate) fn new(commands: queue::Sender<SecurityCommand>) -> Self {
        Self { commands }
    }

    /// Puts identity and trusted keys in force. Peers that are trusted no longer lose their keys at once. Returns false if
    /// too many commands wait.
    pub fn set_keys(&mut self, identity: Identity, trust: TrustStore) -> bool {
        self.send(SecurityCommand::Keys(Box::new(identity), trust))
    }

    /// Rotates the keys of all streams, and all back keys. Returns false if too many commands wait.
    pub fn rotate(&mut self) -> bool {
        self.send(SecurityCommand::Rotate)
    }

    /// Reports a problem with the key files; what is in force stays.
    pub(crate) fn problem(&mut self, text: String) {
        // Commands that wait are about the files, too.
        self.send(SecurityCommand::Problem(text));
    }

    fn send(&mut self, command: SecurityCommand) -> bool {
        self.commands.try_send(command).is_ok()
    }
}
