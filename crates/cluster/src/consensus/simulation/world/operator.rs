// SPDX-License-Identifier: Apache-2.0
//! The operator of the world: nodes that join, leave and are replaced.

use super::super::super::{ChangeError, Consensus, MemberId, Membership, MembershipChange};
use super::super::checks::Violation;
use super::super::node::Node;
use super::super::schedule::{Fault, MILLISECOND};
use super::{Event, Process, World};

impl World<'_> {
    /// Takes a fault that changes the members.
    pub(super) fn wish(&mut self, fault: Fault) {
        match fault {
            Fault::Join { member } if !self.processes[member].is_present => {
                self.join(member);
                self.wishes.push_back(MembershipChange::Add(id_of(member)));
            }
            Fault::Leave { member } => {
                self.wishes
                    .push_back(MembershipChange::Remove(id_of(member)));
            }
            Fault::Replace { member } if self.may_lose_disk(member) => {
                self.join(member);
                let id = id_of(member);
                self.wishes.push_front(MembershipChange::Add(id));
                self.wishes.push_front(MembershipChange::Remove(id));
            }
            _ => {}
        }
    }

    /// Returns the members by the last committed entry, without those that lost their disks.
    pub(super) fn living_members(&self) -> impl Iterator<Item = &Process> {
        let voters = self.checks.membership.as_ref().map(Membership::voters);
        let voters = voters.unwrap_or_default().iter();
        voters.filter_map(|voter| {
            let process = &self.processes[voter.id as usize];
            (process.node.incarnation() == voter.incarnation).then_some(process)
        })
    }

    /// Returns the membership of the last committed entry.
    pub(in super::super) fn membership(&self) -> &Membership {
        let membership = self.checks.membership.as_ref();
        membership.expect("entries are committed")
    }

    /// Puts a new node with this id in the place of what was there, if anything was.
    pub(super) fn join(&mut self, member: usize) {
        let incarnation = self.next_incarnation[member];
        self.next_incarnation[member] += 1;
        let membership = self.checks.membership.as_ref();
        let voters = membership.map(Membership::voters).unwrap_or_default();
        let mut members: Vec<MemberId> = voters.iter().map(|voter| voter.id).collect();
        if members.iter().all(|id| *id == id_of(member)) {
            members = (0..).take(self.schedule.members).collect();
        }
        let config = self.schedule.joining(member, &members, incarnation);
        let process = &mut self.processes[member];
        process.node = Node::new(config, self.defects);
        process.run += 1;
        process.command += 1;
        process.is_present = true;
        self.start(member);
    }

    /// Returns true if all members have their disks.
    fn is_complete(&self, membership: &Membership) -> bool {
        membership.voters().iter().all(|voter| {
            let process = &self.processes[voter.id as usize];
            process.is_present && process.node.incarnation() == voter.incarnation
        })
    }

    fn memberships(&self) -> impl Iterator<Item = &Membership> {
        let cores = self
            .processes
            .iter()
            .filter_map(|process| process.node.core.as_ref());
        let known = cores.map(|core: &Consensus| &core.membership().membership);
        known.chain(self.checks.membership.as_ref())
    }

    /// Returns true if the cluster goes on without the disk of this member: whichever membership of those known is in effect, all
    /// other members have theirs.
    pub(super) fn may_lose_disk(&self, member: usize) -> bool {
        let id = id_of(member);
        let is_up = |process: &Process| process.node.is_up() || !process.is_present;
        self.wishes.is_empty()
            && self.processes[member].is_present
            && self.processes.iter().all(is_up)
            && self.memberships().all(|membership| {
                self.is_complete(membership)
                    && (membership.voters().len() > 2 || membership.get(id).is_none())
            })
    }

    /// Asks the leaders for the next change of the members.
    pub(super) fn operate(&mut self) -> Result<(), Violation> {
        let at = self.now + 5 * MILLISECOND + self.random.i64(0..20 * MILLISECOND);
        self.at(at, Event::Operator);
        let Some(change) = self.wishes.front().copied() else {
            return Ok(());
        };
        if let MembershipChange::Remove(id) = change
            && !self.memberships().all(|it| {
                self.is_complete(it)
                    || it.get(id).is_some_and(|voter| {
                        self.processes[id as usize].node.incarnation() != voter.incarnation
                    })
            })
        {
            // Another member without its disk is replaced before.
            self.wishes.pop_front();
            return Ok(());
        }
        for member in 0..self.processes.len() {
            if self.now < self.processes[member].stalled_until {
                continue;
            }
            let now = self.clock(member);
            let Some(core) = self.processes[member].node.core.as_mut() else {
                continue;
            };
            match core.change_membership(now, change) {
                Ok(())
                | Err(
                    ChangeError::AlreadyMember { .. }
                    | ChangeError::NoMember { .. }
                    | ChangeError::LastMember { .. },
                ) => {
                    self.wishes.pop_front();
                    return self.after(member);
                }
                Err(_) => self.after(member)?,
            }
        }
        Ok(())
    }
}

fn id_of(member: usize) -> MemberId {
    MemberId::try_from(member).expect("a small number")
}
