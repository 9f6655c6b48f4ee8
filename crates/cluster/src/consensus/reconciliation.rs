// SPDX-License-Identifier: Apache-2.0
//! Comparison of a follower's log with its leader's, truncation, and replication of what is missing
//! (`docs/spec/cluster.md` §12.2, "Divergence").
//!
//! Terms with content identify a log: two logs that both have content of a term are equal up to the smaller of their ends in it.
//! So the follower looks for its last term with content that the leader's log has at the same position. Lists of terms prove
//! nothing, since they have entries without content.

use super::config::Nanos;
use super::decision::LogCommand;
use super::defects::Defect;
use super::follower::Following;
use super::member::Consensus;
use super::{NULL_TERM, State, TermEntry};

/// Progress of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reconciliation {
    /// Term that both logs have content of, or are about to; [`NULL_TERM`] if the own log is empty.
    shared: Option<i64>,
    /// Position of the leader's log that is read.
    reading: Option<i64>,
    /// End of the replication that runs.
    replicating: Option<i64>,
}

impl Consensus {
    pub(super) fn step_follower_log_replication(&mut self, now: Nanos) {
        if self.is_leader_silent(now) {
            return;
        }
        self.ask(now);
        if self.defects.has(Defect::CommitUncompared) {
            self.follow_commit();
        }
        if let Some(end) = self.following.reconciliation.replicating {
            if self.append < end {
                self.has_stalled(now);
                return;
            }
            self.following.reconciliation.replicating = None;
        }
        if self.following.reconciliation.reading.is_some() {
            self.fails_after_timeout(now, self.following.progress);
            return;
        }
        // A truncation or a TERM entry is durable before what follows it, so that a power cut never leaves content without a term.
        if self.is_durable(self.last_write()) {
            self.reconcile(now);
        }
    }

    /// Tells the leader, each status interval, the term that the next announcement has to be about.
    fn ask(&mut self, now: Nanos) {
        if self.is_due(now, self.config.timing.status_interval) {
            let log_term = self.terms.log_term();
            let shared = self.following.reconciliation.shared;
            let asked = shared.map_or(log_term, |shared| shared.min(log_term));
            let message = self.canvass_message(asked);
            self.send_to(self.following.leader, message);
        }
    }

    /// Takes the next step; none while it waits for an announcement.
    fn reconcile(&mut self, now: Nanos) {
        let Following {
            term,
            base,
            announced,
            ..
        } = self.following;
        if self.terms.log_term() == term {
            // Written when the logs were equal up to the base; what is behind it came from this leader.
            self.enter(now, State::FollowerReplay);
            return;
        }
        let Some(shared) = self.shared_term(now) else {
            return;
        };
        let end = if shared == NULL_TERM {
            self.append
        } else if announced.tells_end_of(shared) {
            announced.next_base.min(base)
        } else {
            return;
        };
        let keeps_tail = self.defects.has(Defect::TruncationForgotten);
        if self.append > end && !keeps_tail && !self.truncate(end, i64::MAX) {
            return;
        }
        if self.append == base || keeps_tail && self.append > base {
            if !self.defects.has(Defect::LateTermEntry) {
                self.following.write = self.write_term(term, base);
            }
            self.enter(now, State::FollowerReplay);
        } else if self.append < end {
            if self.terms.log_term() > shared
                && let Some(entry) = self.terms.get(shared)
            {
                self.write_term(entry.term, entry.base);
            }
            self.replicate(now, end);
        } else {
            self.read(now, self.append);
        }
    }

    /// Returns the last term with content that both logs have, once it is known; truncates what the leader's log has not.
    fn shared_term(&mut self, now: Nanos) -> Option<i64> {
        if let Some(shared) = self.following.reconciliation.shared {
            return Some(shared);
        }
        let Following {
            base, announced, ..
        } = self.following;
        loop {
            let Some(last) = self.terms.last_with_content(self.append) else {
                return Some(self.share(NULL_TERM));
            };
            if self.is_proven(last) {
                return Some(self.share(last.term));
            }
            if last.base < base && !self.defects.has(Defect::TermListTrusted) {
                self.read(now, last.base);
                return None;
            }
            if self.defects.has(Defect::TermListTrusted) {
                let log_term = self.terms.log_term();
                return announced
                    .tells_end_of(log_term)
                    .then(|| self.share(log_term));
            }
            if !self.truncate(last.base, last.term) {
                return None;
            }
        }
    }

    fn share(&mut self, term: i64) -> i64 {
        self.following.reconciliation.shared = Some(term);
        term
    }

    /// Returns true if the announcement alone shows that the leader's log has this term with content: it is the last one before
    /// the leader's own, and the leader does not announce terms that its log has not.
    fn is_proven(&self, last: TermEntry) -> bool {
        let Following {
            leader,
            term,
            base,
            announced,
            ..
        } = self.following;
        self.index_of(leader)
            .is_some_and(|index| self.peers[index].is_taran)
            && announced.log_term == last.term
            && announced.next_term == term
            && last.base < base
            && self.terms.log_term() == last.term
    }

    fn read(&mut self, now: Nanos, position: i64) {
        self.following.reconciliation.reading = Some(position);
        self.following.progress = now;
        let leader = self.following.leader;
        self.log(LogCommand::ReadTermEvent { leader, position });
    }

    fn replicate(&mut self, now: Nanos, to: i64) {
        self.following.reconciliation.replicating = Some(to);
        self.following.progress = now;
        let leader = self.following.leader;
        let from = self.append;
        self.log(LogCommand::Replicate { leader, from, to });
    }

    /// Takes what the leader's log has at a position that was read: the first entry of the own last term with content, or the
    /// first entry that the own log has not.
    pub(super) fn on_term_event_read(&mut self, now: Nanos, position: i64, term: Option<i64>) {
        let is_awaited = self.state == State::FollowerLogReplication
            && self.following.reconciliation.reading == Some(position);
        if !is_awaited {
            return;
        }
        self.following.reconciliation.reading = None;
        self.following.progress = now;
        if self.following.reconciliation.shared.is_some() {
            match term {
                // Written before the first byte of the term is recorded.
                Some(next) if next < self.following.term => {
                    self.write_term(next, self.append);
                    self.share(next);
                    self.election.next_send = now;
                }
                _ => self.fail(now, super::Fault::LogFailed(self.state)),
            }
            return;
        }
        if let Some(last) = self.terms.last_with_content(self.append) {
            if term == Some(last.term) {
                self.share(last.term);
                self.election.next_send = now;
            } else {
                self.truncate(last.base, last.term);
            }
        }
    }
}
