// SPDX-License-Identifier: Apache-2.0
//! Another node of the cluster, as a member knows it.

use super::config::{MemberId, Nanos};
use super::credit::Report;
use super::membership::{Incarnation, ORIGINAL};

/// Time before all others.
pub(super) const NEVER: Nanos = Nanos::MIN / 4;

/// Another node: a member, or a learner, which has the log and does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    pub(super) id: MemberId,
    /// The node that counts under this id in the membership in effect; none if there is none.
    pub(super) member: Option<Incarnation>,
    /// Incarnation that it told last.
    pub(super) incarnation: Incarnation,
    /// Incarnation of the member that left last under this id.
    pub(super) departed: Incarnation,
    /// It may be another node than the member with its id: its reports do not count.
    pub(super) is_learner: bool,
    /// Time of its last message.
    pub(super) seen: Nanos,
    /// Time of the last message that counts as news.
    pub(super) heard: Nanos,
    /// Last report about its log in this election or term.
    pub(super) report: Option<Report>,
    /// Log term in its last canvass or vote in this election or term.
    pub(super) shown_log_term: Option<i64>,
    /// Its vote in the current ballot.
    pub(super) vote: Option<bool>,
    /// It follows the rules of `docs/spec/cluster.md` §12.2.
    pub(super) is_taran: bool,
    /// It has requested a replay since its last canvass.
    pub(super) requested_catchup: bool,
    /// The replay runs.
    pub(super) is_catching_up: bool,
    /// Its log has reached the commit position in this term.
    pub(super) has_caught_up: bool,
}

impl Peer {
    pub(super) const fn new(id: MemberId) -> Self {
        Self {
            id,
            member: None,
            incarnation: ORIGINAL,
            departed: ORIGINAL,
            is_learner: false,
            seen: NEVER,
            heard: NEVER,
            report: None,
            shown_log_term: None,
            vote: None,
            is_taran: false,
            requested_catchup: false,
            is_catching_up: false,
            has_caught_up: false,
        }
    }

    /// Forgets what is of one election only.
    pub(super) fn forget(&mut self) {
        *self = Self {
            member: self.member,
            incarnation: self.incarnation,
            departed: self.departed,
            is_learner: self.is_learner,
            seen: self.seen,
            heard: self.heard,
            is_taran: self.is_taran,
            ..Self::new(self.id)
        };
    }

    /// Takes the incarnation that the node tells. What is known of another node with its id is forgotten.
    pub(super) fn introduce(&mut self, incarnation: Incarnation) {
        if self.incarnation != incarnation {
            self.forget();
            self.heard = NEVER;
        }
        self.incarnation = incarnation;
    }

    /// Takes the node that counts under this id from now on.
    pub(super) fn set_member(&mut self, member: Option<Incarnation>) {
        if let (Some(departed), None) = (self.member, member) {
            self.departed = departed;
        }
        self.member = member;
    }

    /// Returns true if a node with this id asks to become a member, and is not the one that left last.
    pub(super) const fn asks_to_join(&self) -> bool {
        self.incarnation != ORIGINAL && self.incarnation != self.departed
    }

    /// Returns true if a node with this id is a member.
    pub(super) const fn is_member(&self) -> bool {
        self.member.is_some()
    }

    /// Returns true if its reports count.
    pub(super) const fn acknowledges(&self) -> bool {
        self.member.is_some() && !self.is_learner
    }

    /// Returns true if it is likely to answer a request for its vote. It decides itself, by the incarnation in the request.
    pub(super) fn may_vote(&self) -> bool {
        self.member
            .is_some_and(|member| !self.is_learner || member == self.incarnation)
    }
}
