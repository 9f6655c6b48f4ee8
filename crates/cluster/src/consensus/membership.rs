// SPDX-License-Identifier: Apache-2.0
//! Membership: the members that count, as the log tells (`docs/spec/cluster.md` §12.5).
//!
//! A membership changes by an entry of the log that has the whole new one, which differs from the one before in one member. It is
//! in effect as soon as the entry is in the log, whether it is committed or not; a truncation of the entry restores the one
//! before.

use super::config::{MAX_MEMBERS, MemberId};

/// Distinguishes nodes that have one id after the other. A member of the first configuration has [`ORIGINAL`], each node that
/// joined later a number of its own: it is not the member whose id it takes, as it has neither its log nor its votes.
pub type Incarnation = i32;

/// Incarnation of the members that a cluster starts with.
pub const ORIGINAL: Incarnation = 0;

/// A member that votes and acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Voter {
    /// Id.
    pub id: MemberId,
    /// The node with this id that is meant.
    pub incarnation: Incarnation,
}

/// The members that vote and acknowledge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    voters: Vec<Voter>,
}

impl Membership {
    /// Returns a membership; none if it has no member or more than [`MAX_MEMBERS`], or an id twice.
    #[must_use]
    pub fn new(voters: Vec<Voter>) -> Option<Self> {
        let is_distinct = |at: usize| voters[..at].iter().all(|before| before.id != voters[at].id);
        let is_valid =
            (1..=MAX_MEMBERS).contains(&voters.len()) && (0..voters.len()).all(is_distinct);
        is_valid.then_some(Self { voters })
    }

    /// The membership of a cluster that starts.
    pub(super) fn original(ids: &[MemberId]) -> Self {
        let original = |id: &MemberId| Voter {
            id: *id,
            incarnation: ORIGINAL,
        };
        Self {
            voters: ids.iter().map(original).collect(),
        }
    }

    /// Returns the members.
    #[must_use]
    pub fn voters(&self) -> &[Voter] {
        &self.voters
    }

    /// Returns the member with this id.
    #[must_use]
    pub fn get(&self, id: MemberId) -> Option<Voter> {
        self.voters.iter().copied().find(|voter| voter.id == id)
    }

    /// Returns true if this very node is a member.
    #[must_use]
    pub fn contains(&self, voter: Voter) -> bool {
        self.voters.contains(&voter)
    }

    /// Returns the number of members that are a majority.
    #[must_use]
    pub const fn quorum(&self) -> usize {
        (self.voters.len() >> 1) + 1
    }

    /// Returns the membership with one member more.
    pub(super) fn with(&self, voter: Voter) -> Self {
        let mut voters = self.voters.clone();
        voters.push(voter);
        Self { voters }
    }

    /// Returns the membership without a member.
    pub(super) fn without(&self, id: MemberId) -> Self {
        let mut voters = self.voters.clone();
        voters.retain(|voter| voter.id != id);
        Self { voters }
    }
}

/// A membership, and the log position behind the entry that brought it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MembershipEntry {
    /// Position behind the entry; that of the snapshot, or 0, for the first one of a list.
    pub position: i64,
    /// Membership from there on.
    pub membership: Membership,
}

/// The memberships of a log, of which the last one is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Memberships {
    /// In ascending order of position. The first one is that of the committed start of the log, so there always is one.
    entries: Vec<MembershipEntry>,
}

impl Memberships {
    /// Returns none if there is no entry, or they are out of order.
    pub(super) fn new(entries: Vec<MembershipEntry>) -> Option<Self> {
        let is_ascending = entries
            .windows(2)
            .all(|pair| pair[0].position < pair[1].position);
        (!entries.is_empty() && is_ascending).then_some(Self { entries })
    }

    pub(super) fn entries(&self) -> &[MembershipEntry] {
        &self.entries
    }

    pub(super) fn newest(&self) -> &MembershipEntry {
        &self.entries[self.entries.len() - 1]
    }

    /// Adds the membership of an entry that follows all others.
    pub(super) fn push(&mut self, entry: MembershipEntry) {
        if entry.position > self.newest().position {
            self.entries.push(entry);
        }
    }

    /// Removes those of entries that a truncation to this position removes. Returns true if another one is in effect now.
    pub(super) fn truncate(&mut self, position: i64) -> bool {
        let before = self.entries.len();
        let kept = self
            .entries
            .iter()
            .filter(|entry| entry.position <= position)
            .count();
        self.entries.truncate(kept.max(1));
        self.entries.len() < before
    }

    /// Forgets what no truncation restores: all before the last one that is committed.
    pub(super) fn forget_before(&mut self, commit: i64) {
        let committed = self
            .entries
            .iter()
            .rposition(|entry| entry.position <= commit);
        self.entries.drain(..committed.unwrap_or(0));
    }
}

/// A change of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipChange {
    /// A learner that has caught up becomes a member.
    Add(MemberId),
    /// A member leaves.
    Remove(MemberId),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(position: i64, ids: &[MemberId]) -> MembershipEntry {
        MembershipEntry {
            position,
            membership: Membership::original(ids),
        }
    }

    #[test]
    fn truncation_restores_the_membership_before() {
        let list = vec![entry(0, &[0, 1, 2]), entry(192, &[0, 1, 2, 3])];
        let mut memberships = Memberships::new(list).unwrap();
        assert!(!memberships.truncate(192));
        assert_eq!(memberships.newest(), &entry(192, &[0, 1, 2, 3]));
        assert!(memberships.truncate(191));
        assert_eq!(memberships.newest(), &entry(0, &[0, 1, 2]));
        assert!(!memberships.truncate(0));
        assert_eq!(memberships.newest(), &entry(0, &[0, 1, 2]));
    }

    #[test]
    fn membership_that_is_committed_is_kept_and_those_before_are_forgotten() {
        let list = vec![entry(0, &[0]), entry(96, &[0, 1]), entry(288, &[0, 1, 2])];
        let mut memberships = Memberships::new(list).unwrap();
        memberships.forget_before(95);
        assert_eq!(memberships.entries().len(), 3);
        memberships.forget_before(200);
        assert_eq!(memberships.entries()[0], entry(96, &[0, 1]));
        memberships.push(entry(288, &[0]));
        assert_eq!(memberships.newest(), &entry(288, &[0, 1, 2]));
    }

    #[test]
    fn list_without_members_or_with_an_id_twice_is_no_membership() {
        let voter = |id, incarnation| Voter { id, incarnation };
        assert_eq!(Membership::new(Vec::new()), None);
        assert_eq!(Membership::new(vec![voter(1, 0), voter(1, 7)]), None);
        let members = Membership::new(vec![voter(1, 0), voter(2, 7)]).unwrap();
        assert!(members.contains(voter(2, 7)) && !members.contains(voter(2, 0)));
        assert_eq!(
            Memberships::new(vec![entry(96, &[0]), entry(96, &[1])]),
            None
        );
    }

    #[test]
    fn quorums_of_memberships_that_differ_in_one_member_meet() {
        for count in 1..MAX_MEMBERS {
            let ids: Vec<MemberId> = (0..).take(count).collect();
            let small = Membership::original(&ids);
            let large = small.with(Voter {
                id: 99,
                incarnation: 5,
            });
            assert!(small.quorum() + large.quorum() > count + 1, "{count}");
            assert_eq!(large.without(99), small);
        }
    }
}
