// SPDX-License-Identifier: Apache-2.0
//! An attempt to open a session.

use super::MemberId;
use super::machine::LinkId;

/// An attempt: asks one member after the other.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) begin_ns: i64,
    pub(super) deadline_ns: i64,
    /// The member that was asked, and until when its answer is awaited.
    pub(super) asked: Option<(LinkId, i64)>,
    /// Leader that a redirect has named, and until when its connection is awaited.
    pub(super) preferred: Option<(MemberId, i64)>,
    /// Time before which no member is asked.
    pub(super) not_before_ns: i64,
    /// Number of the connection that is asked next.
    pub(super) turn: usize,
    /// Requests of this attempt: correlation id and connection.
    pub(super) requests: Vec<(i64, LinkId)>,
    /// Text of the last refusal.
    pub(super) refusal: Option<String>,
}

impl Attempt {
    pub(super) fn new(begin_ns: i64, timeout_ns: i64) -> Self {
        Self {
            begin_ns,
            deadline_ns: begin_ns.saturating_add(timeout_ns),
            asked: None,
            preferred: None,
            not_before_ns: begin_ns,
            turn: 0,
            requests: Vec::new(),
            refusal: None,
        }
    }

    /// Returns the connection of a request of this attempt.
    pub(super) fn link_of(&self, correlation_id: i64) -> Option<LinkId> {
        let found = self.requests.iter().find(|(id, _)| *id == correlation_id);
        found.map(|(_, link)| *link)
    }

    /// Stops to wait for an answer; asks again after `pause_ns`.
    pub(super) fn ask_again(&mut self, now_ns: i64, pause_ns: i64) {
        self.asked = None;
        self.not_before_ns = now_ns.saturating_add(pause_ns);
    }

    pub(super) fn waiting_for(&self, has_egress: bool, has_link: bool) -> String {
        if let Some(refusal) = &self.refusal {
            return format!("a session instead of the refusal `{refusal}`");
        }
        let text = if !has_egress {
            "the egress subscription"
        } else if !has_link {
            "a connection to a member: check the ingress endpoints"
        } else if self.preferred.is_some() {
            "a connection to the leader that a member has named"
        } else if self.asked.is_some() {
            "an answer on the egress channel: check that members can reach it"
        } else {
            "the cluster to elect a leader"
        };
        text.to_owned()
    }
}
