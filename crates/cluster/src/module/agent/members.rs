// SPDX-License-Identifier: Apache-2.0
//! Answers to tools that ask for the members.

use taran_sbe::runtime::EncodeError;

use super::ModuleAgent;
use crate::members::Member;
use crate::protocol::{
    ClusterMembersExtendedResponse, ClusterMembersQuery, ClusterMembersResponse, MemberStatus,
    NULL_VALUE, ServiceCommand,
};
use crate::service::Service;

impl<S: Service> ModuleAgent<S> {
    pub(super) fn answer_members(&mut self, query: &ClusterMembersQuery) {
        let leader_member_id = self.core.leader().unwrap_or(-1);
        if !query.extended {
            let members = self.config.members.to_string();
            let response = ServiceCommand::ClusterMembersResponse(ClusterMembersResponse {
                correlation_id: query.correlation_id,
                leader_member_id,
                active_members: &members,
                passive_followers: "",
            });
            let answered = self.containers.answer(|buffer| response.encode(buffer));
            return self.check_answer(answered);
        }
        let response = ClusterMembersExtendedResponse {
            correlation_id: query.correlation_id,
            current_time_ns: self.now.epoch_millis.saturating_mul(1_000_000),
            leader_member_id,
            member_id: self.config.member_id,
            members: self
                .config
                .members
                .all()
                .iter()
                .map(|it| self.status(it))
                .collect(),
        };
        let answered = self.containers.answer(|buffer| response.encode(buffer));
        self.check_answer(answered);
    }

    fn check_answer(&mut self, answered: Result<(), EncodeError>) {
        if let Err(error) = answered {
            self.error(&format!(
                "the members cannot be listed for a tool: {error}; use shorter endpoints in aeron.cluster.members, or a \
                 longer term-length in aeron.cluster.control.channel"
            ));
        }
    }

    /// Returns what this member knows of one: of itself, or by its last report.
    fn status(&self, member: &Member) -> MemberStatus {
        let epoch_ns = |heard: i64| {
            let age = self.now.nanos.saturating_sub(heard);
            self.now.epoch_millis.saturating_mul(1_000_000) - age
        };
        let (report, heard) = if member.id == self.config.member_id {
            let term = self.core.term().unwrap_or(self.core.terms().log_term());
            let report = (term, self.core.append_position());
            (Some(report), Some(self.now.nanos))
        } else {
            let found = self.core.reports().find(|(id, _, _)| *id == member.id);
            found.map_or((None, None), |(_, report, heard)| (report, heard))
        };
        let (leadership_term_id, log_position) = report.unwrap_or((NULL_VALUE, NULL_VALUE));
        MemberStatus {
            member_id: member.id,
            leadership_term_id,
            log_position,
            time_of_last_append_ns: heard.map_or(NULL_VALUE, epoch_ns),
            endpoints: [
                &member.ingress,
                &member.consensus,
                &member.log,
                &member.catchup,
                &member.archive,
            ]
            .map(Clone::clone),
        }
    }
}
