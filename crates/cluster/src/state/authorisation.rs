// SPDX-License-Identifier: Apache-2.0
//! Authorisation of requests (`docs/spec/cluster.md` §2.6).

/// Schema id of the cluster's protocol, with which an [`AuthorisationService`] is asked.
pub const CLUSTER_PROTOCOL_ID: i32 = 111;

/// Decides which requests of whom are executed.
pub trait AuthorisationService: Send {
    /// Returns true if the request may be executed. `action_id` is the template id of the request, `request_type` its type if it
    /// has one, `principal` what the authenticator has given to the client.
    fn is_authorised(
        &self,
        protocol_id: i32,
        action_id: i32,
        request_type: Option<i32>,
        principal: &[u8],
    ) -> bool;
}

/// Authorisation that depends on the request only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandardAuthorisation {
    /// Allows what backups and standby nodes ask for, and denies administrative requests of clients.
    #[default]
    Default,
    /// Allows all requests.
    AllowAll,
    /// Denies all requests.
    DenyAll,
}

/// Template ids of BackupQuery, HeartbeatRequest and StandbySnapshot.
const OF_BACKUPS: [i32; 3] = [77, 79, 81];

impl AuthorisationService for StandardAuthorisation {
    fn is_authorised(&self, protocol_id: i32, action_id: i32, _: Option<i32>, _: &[u8]) -> bool {
        match self {
            Self::Default => protocol_id == CLUSTER_PROTOCOL_ID && OF_BACKUPS.contains(&action_id),
            Self::AllowAll => true,
            Self::DenyAll => false,
        }
    }
}
