// SPDX-License-Identifier: Apache-2.0
//! Answer of a consensus module to the extended question of a tool (`docs/spec/cluster.md` §11.5).

use taran_sbe::runtime::EncodeError;

use super::MessageError;
use super::wire::FromWire;
use crate::codecs::cluster;
use crate::codecs::cluster::cluster_members_extended_response::{
    ClusterMembersExtendedResponseDecoder as Decoder,
    ClusterMembersExtendedResponseEncoder as Encoder,
};

/// A member of a cluster, as the one that answers knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Id.
    pub member_id: i32,
    /// Term of its last report; -1 if it is not known.
    pub leadership_term_id: i64,
    /// Append position in its last report; -1 if it is not known.
    pub log_position: i64,
    /// Time of its last report in the unit of `current_time_ns`; -1 if there is none.
    pub time_of_last_append_ns: i64,
    /// Endpoints of ingress, consensus, log, catch-up and archive.
    pub endpoints: [String; 5],
}

/// Answers an extended `ClusterMembersQuery`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMembersExtendedResponse {
    /// Correlation id of the query.
    pub correlation_id: i64,
    /// Time of the member that answers.
    pub current_time_ns: i64,
    /// Leader, or -1.
    pub leader_member_id: i32,
    /// Member that answers.
    pub member_id: i32,
    /// Members with a vote.
    pub members: Vec<MemberStatus>,
}

impl ClusterMembersExtendedResponse {
    /// Template id of the message.
    pub const TEMPLATE_ID: u64 = Decoder::TEMPLATE_ID;

    /// Writes the message with its header. Returns its length in bytes.
    ///
    /// # Errors
    /// The buffer is too small.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut encoder = Encoder::encode(buffer)?;
        encoder.correlation_id(self.correlation_id);
        encoder.current_time_ns(self.current_time_ns);
        encoder.leader_member_id(self.leader_member_id);
        encoder.member_id(self.member_id);
        let mut members = encoder.active_members()?;
        for member in &self.members {
            let mut entry = members.entry()?;
            entry.leadership_term_id(member.leadership_term_id);
            entry.log_position(member.log_position);
            entry.time_of_last_append_ns(member.time_of_last_append_ns);
            entry.member_id(member.member_id);
            let [ingress, consensus, log, catchup, archive] = &member.endpoints;
            members = entry
                .ingress_endpoint(ingress)?
                .consensus_endpoint(consensus)?
                .log_endpoint(log)?
                .catchup_endpoint(catchup)?
                .archive_endpoint(archive)?
                .done();
        }
        Ok(members.done().passive_members()?.done().finish())
    }

    /// Reads the message with its header.
    ///
    /// # Errors
    /// The bytes are another message, or end too early; a text is not ASCII.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (header, body) = cluster::header(bytes)?;
        taran_sbe::runtime::schema_is(cluster::SCHEMA_ID, &header)?;
        if header.template_id != Self::TEMPLATE_ID {
            let template_id = header.template_id;
            return Err(MessageError::UnexpectedTemplate { template_id });
        }
        let decoder = Decoder::wrap(body, header.block_length, header.version)?;
        let (entries, _) = decoder.active_members()?;
        let mut members = Vec::new();
        for entry in entries {
            let member = entry;
            let (ingress, entry) = entry.ingress_endpoint()?;
            let (consensus, entry) = entry.consensus_endpoint()?;
            let (log, entry) = entry.log_endpoint()?;
            let (catchup, entry) = entry.catchup_endpoint()?;
            let (archive, _) = entry.archive_endpoint()?;
            let text = |value, name| <&str>::from_wire(value, name).map(str::to_owned);
            members.push(MemberStatus {
                member_id: member.member_id(),
                leadership_term_id: member.leadership_term_id(),
                log_position: member.log_position(),
                time_of_last_append_ns: member.time_of_last_append_ns(),
                endpoints: [
                    text(ingress, "ingressEndpoint")?,
                    text(consensus, "consensusEndpoint")?,
                    text(log, "logEndpoint")?,
                    text(catchup, "catchupEndpoint")?,
                    text(archive, "archiveEndpoint")?,
                ],
            });
        }
        Ok(Self {
            correlation_id: decoder.correlation_id(),
            current_time_ns: decoder.current_time_ns(),
            leader_member_id: decoder.leader_member_id(),
            member_id: decoder.member_id(),
            members,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_as_written_and_bytes_cut_short_are_an_error() {
        let member = |member_id| MemberStatus {
            member_id,
            leadership_term_id: 3,
            log_position: 960,
            time_of_last_append_ns: -1,
            endpoints: ["a:1", "b:2", "c:3", "d:4", "e:5"].map(str::to_owned),
        };
        let response = ClusterMembersExtendedResponse {
            correlation_id: 7,
            current_time_ns: 8,
            leader_member_id: 1,
            member_id: 2,
            members: vec![member(0), member(1)],
        };
        let mut bytes = [0; 512];
        let length = response.encode(&mut bytes).unwrap();
        let decoded = ClusterMembersExtendedResponse::decode(&bytes[..length]);
        assert_eq!(decoded, Ok(response));
        for short in 0..length - 4 {
            assert!(ClusterMembersExtendedResponse::decode(&bytes[..short]).is_err());
        }
    }
}
