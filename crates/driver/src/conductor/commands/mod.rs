// SPDX-License-Identifier: Apache-2.0
//! Handlers of client commands (docs/spec/shared-memory.md §9.4). One file for each kind of resource.
//!
//! A handler returns `Ok` when the command is done and answered, otherwise the reason why it did not complete. An
//! incomplete command may leave its client registered and a log file requested; all other effects are undone.

mod counters;
mod driver;
mod ipc_publications;
mod local_subscriptions;
mod network_publications;
mod network_subscriptions;
mod preallocation;
mod publications;
mod receive_destinations;
mod receive_endpoints;
mod send_destinations;
mod send_endpoints;
mod sender_spec;
mod subscriptions;

use taran_protocol::command::Command;

use super::command_error::CommandError;
use super::deferred_commands::ResolvedPrerequisites;
use super::state::ConductorState;

/// Arguments of a destination command.
#[derive(Debug, Clone, Copy)]
struct DestinationCommand<'a> {
    correlation_id: i64,
    /// Registration id of the publication or subscription.
    registration_id: i64,
    channel: &'a str,
}

impl ConductorState {
    /// Runs a command, if it can run now.
    pub(crate) fn execute(
        &mut self,
        command: &Command<'_>,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        match *command {
            Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            } => self.add_publication(
                client_id,
                correlation_id,
                stream_id,
                channel,
                false,
                prerequisites,
            ),
            Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            } => self.add_publication(
                client_id,
                correlation_id,
                stream_id,
                channel,
                true,
                prerequisites,
            ),
            Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id,
                revoke,
            } => Ok(self.remove_publication(client_id, correlation_id, registration_id, revoke)?),
            Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            } => {
                self.add_subscription(client_id, correlation_id, stream_id, channel, prerequisites)
            }
            Command::RemoveSubscription {
                correlation_id,
                registration_id,
                ..
            } => Ok(self.remove_subscription(correlation_id, registration_id)?),
            Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id,
                key,
                label,
            } => Ok(self.add_counter(client_id, correlation_id, counter_type_id, key, label)?),
            Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                counter_type_id,
                key,
                label,
            } => {
                self.ensure_client(client_id)?;
                Ok(self.add_static_counter(
                    correlation_id,
                    registration_id,
                    counter_type_id,
                    key,
                    label,
                )?)
            }
            Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            } => Ok(self.remove_counter(client_id, correlation_id, registration_id)?),
            Command::ClientKeepalive { client_id, .. } => {
                self.clients.keep_alive(client_id, self.now.epoch_millis);
                Ok(())
            }
            Command::ClientClose { client_id, .. } => {
                self.clients.close(client_id);
                Ok(())
            }
            Command::AddDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            }
            | Command::RemoveDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            }
            | Command::AddReceiveDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            }
            | Command::RemoveReceiveDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            } => {
                let of = DestinationCommand {
                    correlation_id,
                    registration_id,
                    channel,
                };
                match command {
                    Command::AddDestination { .. } => self.add_send_destination(of, prerequisites),
                    Command::RemoveDestination { .. } => {
                        self.remove_send_destination(of, prerequisites)
                    }
                    Command::AddReceiveDestination { .. } => {
                        self.add_receive_destination(of, prerequisites)
                    }
                    _ => self.remove_receive_destination(of, prerequisites),
                }
            }
            Command::RemoveDestinationById {
                correlation_id,
                registration_id,
                destination_id,
                ..
            } => Ok(self.remove_send_destination_by_id(
                correlation_id,
                registration_id,
                destination_id,
            )?),
            Command::TerminateDriver { token, .. } => {
                self.termination.request(token);
                Ok(())
            }
            Command::RejectImage {
                correlation_id,
                image_id,
                reason,
                ..
            } => Ok(self.reject_image(correlation_id, image_id, reason)?),
            Command::NextAvailableSessionId {
                correlation_id,
                stream_id,
                ..
            } => {
                self.send_next_session_id(correlation_id, stream_id);
                Ok(())
            }
        }
    }
}
