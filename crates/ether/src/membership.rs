// SPDX-License-Identifier: Apache-2.0
//! Membership of a host in groups: when to report what (RFC 2236, 2710, 3376, 3810), for any source.

use std::net::IpAddr;

use thiserror::Error;

use crate::group::{ALL_NODES_V4, ALL_NODES_V6};
use crate::{MacAddress, MembershipReport, MembershipVersion, Query, Record, RecordKind, VlanTag};

const MILLISECOND_NS: i64 = 1_000_000;
/// Longest time between two reports of one change.
const REPEAT_MS: u32 = 1000;
/// Number of reports of a change until a querier states another one.
const DEFAULT_ROBUSTNESS: u8 = 2;

/// Reason why a group is not joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The address is none of a group.
    #[error("{0} is no multicast address")]
    NotAGroup(IpAddr),
    /// The table is full.
    #[error("the host is in {most} groups already, which is the most")]
    Full {
        /// Capacity.
        most: usize,
    },
}

/// Report to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueReport {
    /// Generation of the protocol.
    pub version: MembershipVersion,
    /// Group, and what to report of it.
    pub record: Record,
}

impl DueReport {
    /// Writes the report as a frame and returns its length; none if the buffer is too short or the source is of another IP version
    /// than the group.
    pub fn write_frame(
        &self,
        source_mac: MacAddress,
        vlan: Option<VlanTag>,
        source: IpAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let records = [self.record];
        let group = self.record.group;
        let report = match (self.version, self.record.kind) {
            (MembershipVersion::V3, _) => MembershipReport::Records(&records),
            (_, RecordKind::ToInclude) => MembershipReport::Leave(group),
            (version, _) => MembershipReport::Report(version, group),
        };
        report.write_frame(source_mac, vlan, source, buffer)
    }
}

#[derive(Debug)]
struct Membership {
    group: IpAddr,
    /// Number of joins; 0 while the group is being left.
    joins: u32,
    /// Reports of the last change that are left, and when the next one is due.
    changes: u8,
    change_ns: i64,
    /// Time of the answer to a query.
    answer_ns: Option<i64>,
}

/// Groups of a host on one interface, for one IP version.
///
/// Contract: [`join`](Self::join) and [`leave`](Self::leave) follow the sockets, [`query`](Self::query) takes queries of
/// routers and [`other_report`](Self::other_report) reports of other hosts. When [`next_deadline_ns`](Self::next_deadline_ns) has
/// come, the caller sends what [`poll`](Self::poll) returns until it returns nothing. Times are nanoseconds of a clock that never
/// goes back.
///
/// A change is reported as often as the querier's robustness says, a query is answered once at a random time within its limit. A
/// query for sources is answered for the whole group, which includes them. While a router speaks an older generation of the
/// protocol, so does the host. Memory is bounded by the number of groups; queries make no entries, and many queries cause no
/// more than one answer per group at a time.
#[derive(Debug)]
pub struct Memberships {
    groups: Vec<Membership>,
    most: usize,
    /// Times until which the generations V1 and V2 are spoken, each after a query of a router that speaks it.
    older_until_ns: [i64; 2],
    robustness: u8,
    random: u64,
}

impl Memberships {
    /// Creates a table for so many groups. The seed decides the random times of answers.
    pub fn new(most: usize, seed: u64) -> Self {
        Self {
            groups: Vec::new(),
            most,
            older_until_ns: [i64::MIN; 2],
            robustness: DEFAULT_ROBUSTNESS,
            // Xorshift never leaves 0.
            random: seed | 1,
        }
    }

    /// Returns true if packets to a group are for this host.
    pub fn contains(&self, group: IpAddr) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|member| member.group == group && member.joins > 0)
    }

    /// Joins a group; each join needs a `leave`.
    ///
    /// # Errors
    /// If the address is no group, or the table is full.
    pub fn join(&mut self, group: IpAddr, now_ns: i64) -> Result<(), MembershipError> {
        if !group.is_multicast() {
            return Err(MembershipError::NotAGroup(group));
        }
        let changes = if is_reported(group) {
            self.robustness
        } else {
            0
        };
        let place = self.groups.iter().position(|member| member.group == group);
        let place = match place {
            Some(place) => place,
            None if self.groups.len() >= self.most => {
                return Err(MembershipError::Full { most: self.most });
            }
            None => {
                self.groups.push(Membership {
                    group,
                    joins: 0,
                    changes: 0,
                    change_ns: now_ns,
                    answer_ns: None,
                });
                self.groups.len() - 1
            }
        };
        let member = &mut self.groups[place];
        member.joins += 1;
        if member.joins == 1 {
            (member.changes, member.change_ns) = (changes, now_ns);
        }
        Ok(())
    }

    /// Takes a join back. Returns false if there is none.
    pub fn leave(&mut self, group: IpAddr, now_ns: i64) -> bool {
        let mut groups = self.groups.iter_mut();
        let member = groups.find(|member| member.group == group && member.joins > 0);
        let Some(member) = member else {
            return false;
        };
        member.joins -= 1;
        if member.joins == 0 {
            member.answer_ns = None;
            member.changes = if is_reported(group) {
                self.robustness
            } else {
                0
            };
            member.change_ns = now_ns;
        }
        self.remove_left();
        true
    }

    /// Takes a query.
    pub fn query(&mut self, query: &Query<'_>, now_ns: i64) {
        let limit_ns = i64::from(query.max_response_ms) * MILLISECOND_NS;
        let interval_ns = i64::from(query.interval_s) * 1000 * MILLISECOND_NS;
        let silence_ns = i64::from(query.robustness) * interval_ns + limit_ns;
        match query.version {
            MembershipVersion::V1 => self.older_until_ns[0] = now_ns + silence_ns,
            MembershipVersion::V2 => self.older_until_ns[1] = now_ns + silence_ns,
            MembershipVersion::V3 => self.robustness = query.robustness.max(1),
        }
        for index in 0..self.groups.len() {
            let delay_ns = self.delay_ns(query.max_response_ms);
            let member = &mut self.groups[index];
            let is_meant = query.group.is_none_or(|group| group == member.group);
            if is_meant && member.joins > 0 && is_reported(member.group) {
                let answer_ns = now_ns + delay_ns;
                let earlier = member.answer_ns.filter(|earlier| *earlier < answer_ns);
                member.answer_ns = Some(earlier.unwrap_or(answer_ns));
            }
        }
    }

    /// Takes the report of another host of an older generation, which answers for all members of its group.
    pub fn other_report(&mut self, group: IpAddr, now_ns: i64) {
        if self.version(now_ns) == MembershipVersion::V3 {
            return;
        }
        for member in &mut self.groups {
            if member.group == group {
                member.answer_ns = None;
            }
        }
    }

    /// Returns the time at which `poll` has to be called at the latest.
    pub fn next_deadline_ns(&self) -> Option<i64> {
        self.groups.iter().filter_map(Membership::due_ns).min()
    }

    /// Returns the next report; none if nothing is due.
    pub fn poll(&mut self, now_ns: i64) -> Option<DueReport> {
        let version = self.version(now_ns);
        loop {
            let is_due = |member: &Membership| member.due_ns().is_some_and(|due| due <= now_ns);
            let index = self.groups.iter().position(is_due)?;
            let delay_ns = self.delay_ns(REPEAT_MS);
            let member = &mut self.groups[index];
            let group = member.group;
            let is_left = member.joins == 0;
            let kind = if member.changes > 0 && member.change_ns <= now_ns {
                member.changes -= 1;
                // At least a millisecond, so that a poll never repeats a report.
                member.change_ns = now_ns + delay_ns.max(MILLISECOND_NS);
                if is_left {
                    RecordKind::ToInclude
                } else {
                    RecordKind::ToExclude
                }
            } else {
                member.answer_ns = None;
                RecordKind::IsExclude
            };
            self.remove_left();
            // IGMPv1 has no message for that.
            if is_left && version == MembershipVersion::V1 {
                continue;
            }
            let record = Record { kind, group };
            return Some(DueReport { version, record });
        }
    }

    /// Returns the generation to speak: the oldest that a router has spoken lately.
    fn version(&self, now_ns: i64) -> MembershipVersion {
        let [v1_until_ns, v2_until_ns] = self.older_until_ns;
        if now_ns < v1_until_ns {
            MembershipVersion::V1
        } else if now_ns < v2_until_ns {
            MembershipVersion::V2
        } else {
            MembershipVersion::V3
        }
    }

    fn remove_left(&mut self) {
        let is_kept = |member: &Membership| member.joins > 0 || member.changes > 0;
        self.groups.retain(is_kept);
    }

    fn delay_ns(&mut self, limit_ms: u32) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let limit_ns = u64::from(limit_ms) * 1_000_000;
        (self.random % (limit_ns + 1)) as i64
    }
}

impl Membership {
    fn due_ns(&self) -> Option<i64> {
        let change_ns = (self.changes > 0).then_some(self.change_ns);
        match (change_ns, self.answer_ns) {
            (Some(change), Some(answer)) => Some(change.min(answer)),
            (change, answer) => change.or(answer),
        }
    }
}

/// Returns true if routers have to know the members of a group: not of "all nodes", nor of groups that stay on the host.
fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group != ALL_NODES_V4,
        IpAddr::V6(group) => group != ALL_NODES_V6 && group.octets()[1] & 0xF > 1,
    }
}
