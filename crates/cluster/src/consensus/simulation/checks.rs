// SPDX-License-Identifier: Apache-2.0
//! Invariants, checked after each step (`docs/consensus.md`).

use std::collections::HashMap;

use super::super::Membership;
use super::node::{Entry, Node, index};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Violation {
    /// Two leaders in one term.
    ElectionSafety { term: i64 },
    /// Two logs with one entry at one place, and another one before it.
    LogMatching { member: usize, index: usize },
    /// An entry that the list of terms of its own log gives to another term.
    TermList { member: usize, index: usize },
    /// A leader without an entry that was committed in a term before.
    LeaderCompleteness { term: i64, index: usize },
    /// Two entries committed at one place.
    StateMachineSafety { member: usize, index: usize },
    /// A committed entry that is on fewer than a quorum of members.
    CommittedLost { index: usize },
    /// No leader, or nothing committed, although the network is whole.
    Progress { committed: usize },
}

impl Violation {
    /// Name of the invariant.
    pub(in super::super) const fn name(&self) -> &'static str {
        match self {
            Self::ElectionSafety { .. } => "election safety",
            Self::LogMatching { .. } => "log matching",
            Self::TermList { .. } => "term list",
            Self::LeaderCompleteness { .. } => "leader completeness",
            Self::StateMachineSafety { .. } => "state machine safety",
            Self::CommittedLost { .. } => "committed never lost",
            Self::Progress { .. } => "progress",
        }
    }
}

/// The history that invariants compare with.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    leaders: HashMap<i64, usize>,
    /// Committed entries, with the term of the leader that committed each.
    pub(super) committed: Vec<(Entry, i64)>,
    /// Membership in effect at the member that committed the last entry.
    pub(super) membership: Option<Membership>,
    /// Hash of the log up to each entry.
    prefixes: HashMap<(i64, usize), u64>,
    /// Hashes of the log of each member.
    hashes: Vec<Vec<u64>>,
}

impl Checks {
    pub(super) fn new(members: usize) -> Self {
        Self {
            hashes: vec![Vec::new(); members],
            ..Self::default()
        }
    }

    pub(super) fn elected(
        &mut self,
        node: &Node,
        member: usize,
        term: i64,
    ) -> Result<(), Violation> {
        if *self.leaders.entry(term).or_insert(member) != member {
            return Err(Violation::ElectionSafety { term });
        }
        for (index, (entry, by)) in self.committed.iter().enumerate() {
            if *by < term && node.log.get(index) != Some(entry) {
                return Err(Violation::LeaderCompleteness { term, index });
            }
        }
        Ok(())
    }

    pub(super) fn committed(
        &mut self,
        node: &Node,
        member: usize,
        position: i64,
    ) -> Result<(), Violation> {
        let term = node.core.as_ref().and_then(super::super::Consensus::term);
        let term = term.unwrap_or(super::super::NULL_TERM);
        for index in 0..index(position) {
            let entry = node.log.get(index).copied();
            let known = self.committed.get(index).map(|(entry, _)| *entry);
            match (entry, known) {
                (Some(entry), None) => {
                    self.committed.push((entry, term));
                    let core = node.core.as_ref();
                    self.membership = core.map(|core| core.membership().membership.clone());
                }
                (Some(entry), Some(known)) if entry == known => {}
                _ => return Err(Violation::StateMachineSafety { member, index }),
            }
        }
        Ok(())
    }

    /// Checks a log that has changed.
    pub(super) fn log(&mut self, node: &Node, member: usize) -> Result<(), Violation> {
        let hashes = &mut self.hashes[member];
        // Entries are only ever added or cut off at the end; a cut may be followed by an addition before this check.
        let unchanged = hashes
            .iter()
            .zip(&node.log)
            .take_while(|(hash, entry)| **hash >> 40 == tag(**entry))
            .count()
            .min(hashes.len());
        hashes.truncate(unchanged);
        for (at, entry) in node.log.iter().enumerate().skip(unchanged) {
            let before = hashes.last().copied().unwrap_or(0);
            let mixed = (before ^ u64::from(entry.id) << 32 ^ entry.term as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let hash = mixed >> 24 | tag(*entry) << 40;
            hashes.push(hash);
            if *self.prefixes.entry((entry.term, at)).or_insert(hash) != hash {
                return Err(Violation::LogMatching { member, index: at });
            }
            if let Some(core) = &node.core {
                let base = super::node::position(at);
                let terms = core.terms().entries();
                let listed = terms.iter().rev().find(|listed| listed.base <= base);
                if listed.is_none_or(|listed| listed.term != entry.term) {
                    return Err(Violation::TermList { member, index: at });
                }
            }
        }
        Ok(())
    }

    /// Checks that the committed entries are where they survive. `durable` restricts that to disks.
    pub(super) fn kept(&self, nodes: &[Node], durable: bool) -> Result<(), Violation> {
        let Some(membership) = &self.membership else {
            return Ok(());
        };
        let Some(at) = self.committed.len().checked_sub(1) else {
            return Ok(());
        };
        // An entry is where all before it are, so the last one stands for all.
        // A node whose disk is gone, and that came back as another one, does not take part any more.
        let holders = membership.voters().iter().filter(|voter| {
            let node = &nodes[voter.id as usize];
            let log = if durable { &node.disk_log } else { &node.log };
            node.incarnation() != voter.incarnation || log.get(at) == Some(&self.committed[at].0)
        });
        if holders.count() < membership.quorum() {
            return Err(Violation::CommittedLost { index: at });
        }
        Ok(())
    }
}

const fn tag(entry: Entry) -> u64 {
    (entry.term as u64)
        .wrapping_mul(31)
        .wrapping_add(entry.id as u64)
        & 0xff_ffff
}
