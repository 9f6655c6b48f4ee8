// SPDX-License-Identifier: Apache-2.0
//! A schedule: cluster, network, disks, clocks, and the faults of one run, all from one seed.

use fastrand::Rng;

use super::super::{BallotEnd, Config, Durability, Incarnation, MemberId, Nanos, Timing};

pub(super) const MILLISECOND: Nanos = 1_000_000;

/// A fault, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Kill {
        member: usize,
    },
    CutPower {
        member: usize,
    },
    CutPowerOfAll,
    /// Kills the member that takes entries.
    KillLeader,
    Restart {
        member: usize,
    },
    /// Messages and log data from one member to others, one bit each, are lost.
    Block {
        from: usize,
        to: u32,
    },
    /// Members of one side, one bit each, and the others do not hear each other.
    Split {
        side: u32,
    },
    Heal,
    /// The member's process does not run.
    Stall {
        member: usize,
        time: Nanos,
    },
    /// Writes of the member take longer.
    SlowDisk {
        member: usize,
        factor: i64,
    },
    /// The member hands leadership over, if it leads: to a member, or to any.
    Transfer {
        member: usize,
        to: Option<MemberId>,
    },
    /// Log image or recording of the member fails.
    FailLog {
        member: usize,
    },
    /// A node that was not there, or was removed, joins and is to become a member.
    Join {
        member: usize,
    },
    /// The member is to leave.
    Leave {
        member: usize,
    },
    /// The member loses its disk for ever, and a new node takes its id.
    Replace {
        member: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    /// Members that the cluster starts with.
    pub(super) members: usize,
    /// Nodes that may join.
    pub(super) spares: usize,
    pub(super) durability: Durability,
    pub(super) timing: Timing,
    /// Messages of a thousand that are lost.
    pub(super) loss: u32,
    /// Messages of a thousand that arrive twice.
    pub(super) duplicates: u32,
    /// Messages of a thousand that arrive much later.
    pub(super) late: u32,
    pub(super) delay: Nanos,
    pub(super) disk_delay: Nanos,
    /// Speed of each clock, in thousandths.
    pub(super) clocks: Vec<i64>,
    pub(super) faults: Vec<(Nanos, Fault)>,
    /// Time at which faults end.
    pub(super) end: Nanos,
}

impl Schedule {
    pub(super) fn random(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let members = *random
            .choice([1, 3, 3, 3, 3, 3, 5, 5, 5, 7].as_slice())
            .expect("not empty");
        let durability = if random.bool() {
            Durability::QuorumDisk
        } else {
            Durability::QuorumMemory
        };
        let mut timing = Timing::fast();
        if random.u8(..4) == 0 {
            timing.ballot_end = BallotEnd::Timeout;
        }
        let end = (300 + random.i64(0..1_500)) * MILLISECOND;
        let mut schedule = Self {
            seed,
            members,
            spares: 0,
            durability,
            timing,
            loss: *random
                .choice([0, 0, 10, 100, 300].as_slice())
                .expect("not empty"),
            duplicates: *random.choice([0, 10, 100].as_slice()).expect("not empty"),
            late: *random.choice([0, 10, 200].as_slice()).expect("not empty"),
            delay: *random
                .choice([1i64, 1, 5, 20].as_slice())
                .expect("not empty")
                * MILLISECOND,
            disk_delay: *random
                .choice([0i64, 1, 10, 60].as_slice())
                .expect("not empty")
                * MILLISECOND,
            clocks: (0..members).map(|_| random.i64(900..1_100)).collect(),
            faults: Vec::new(),
            end,
        };
        for _ in 0..random.usize(0..16) {
            let at = random.i64(0..end);
            let fault = schedule.random_fault(&mut random);
            schedule.faults.push((at, fault));
            if let Fault::Kill { member } | Fault::CutPower { member } = fault {
                let again = at + random.i64(0..400 * MILLISECOND);
                schedule.faults.push((again, Fault::Restart { member }));
            }
            if matches!(fault, Fault::Block { .. } | Fault::Split { .. }) && random.bool() {
                let healed = at + random.i64(0..800 * MILLISECOND);
                schedule.faults.push((healed, Fault::Heal));
            }
        }
        if random.u8(..3) == 0 {
            schedule.add_membership_changes(&mut random);
        }
        schedule.faults.retain(|(at, _)| *at < end);
        schedule.faults.sort_by_key(|(at, _)| *at);
        schedule
    }

    fn random_fault(&self, random: &mut Rng) -> Fault {
        let member = random.usize(..self.members);
        let mask = random.u32(..1 << self.members);
        match random.u8(..16) {
            0..=2 => Fault::Kill { member },
            3..=4 if self.durability == Durability::QuorumDisk => Fault::CutPower { member },
            5 if self.durability == Durability::QuorumDisk => Fault::CutPowerOfAll,
            3..=6 => Fault::Split { side: mask },
            7..=9 => Fault::Block {
                from: member,
                to: mask,
            },
            10..=11 => Fault::Stall {
                member,
                time: random.i64(0..600 * MILLISECOND),
            },
            12 => Fault::SlowDisk {
                member,
                factor: random.i64(1..10),
            },
            13 => Fault::FailLog { member },
            14 => Fault::Heal,
            _ => Fault::Transfer {
                member,
                to: (mask & 1 == 1).then(|| {
                    let members = u32::try_from(self.members).unwrap_or(1);
                    i32::try_from((mask >> 1) % members).unwrap_or(0)
                }),
            },
        }
    }

    fn add_membership_changes(&mut self, random: &mut Rng) {
        self.spares = random.usize(0..3);
        if self.timing.ballot_end == BallotEnd::Timeout {
            // A member without its disk never votes, so ballots last their whole time, after which voters still have to count as heard.
            self.timing.election_timeout = self.timing.heartbeat_timeout / 2;
        }
        let count = self.nodes();
        for _ in self.members..count {
            self.clocks.push(random.i64(900..1_100));
        }
        for _ in 0..random.usize(1..6) {
            let at = random.i64(0..self.end);
            let member = random.usize(..count);
            match random.u8(..4) {
                0 => self.lose_disk(random, at, member),
                1 => self.faults.push((at, Fault::Leave { member })),
                2 => self.change_apart(random, at),
                _ if self.spares > 0 => {
                    let member = self.members + random.usize(..self.spares);
                    self.faults.push((at, Fault::Join { member }));
                }
                _ => {}
            }
        }
    }

    /// A member loses its disk, while another one lags behind and a third one dies.
    fn lose_disk(&mut self, random: &mut Rng, at: Nanos, member: usize) {
        let mut soon = || at + random.i64(0..60 * MILLISECOND);
        let times = [soon(), soon(), soon()];
        self.faults.push((times[1], Fault::Replace { member }));
        if random.bool() {
            let from = random.usize(..self.members);
            let to = random.u32(..1 << self.nodes());
            self.faults.push((times[0], Fault::Block { from, to }));
            self.faults
                .push((times[1] + times[2] - at, Fault::Kill { member: from }));
            let again = times[2] + random.i64(0..800 * MILLISECOND);
            self.faults.push((again, Fault::Heal));
            self.faults.push((again, Fault::Restart { member: from }));
        }
    }

    /// Several members leave at a time when not all hear each other.
    fn change_apart(&mut self, random: &mut Rng, at: Nanos) {
        let side = random.u32(..1 << self.nodes());
        self.faults.push((at, Fault::Split { side }));
        for _ in 0..random.usize(1..4) {
            let member = random.usize(..self.nodes());
            let at = at + random.i64(-40 * MILLISECOND..100 * MILLISECOND);
            self.faults.push((at.max(0), Fault::Leave { member }));
        }
        let healed = at + random.i64(0..900 * MILLISECOND);
        self.faults.push((healed, Fault::Heal));
    }

    /// Number of nodes that are there at some time.
    pub(super) const fn nodes(&self) -> usize {
        self.members + self.spares
    }

    /// Settings of a member that the cluster starts with.
    pub(super) fn config(&self, member: usize) -> Config {
        let ids: Vec<MemberId> = (0..).take(self.members).collect();
        Config::new(ids[member], &ids, self.timing, self.durability).expect("a valid cluster")
    }

    /// Settings of a node that joins these members.
    pub(super) fn joining(
        &self,
        member: usize,
        members: &[MemberId],
        incarnation: Incarnation,
    ) -> Config {
        let id = MemberId::try_from(member).expect("a small number");
        let others = members.iter().copied().filter(|other| *other != id);
        let ids: Vec<MemberId> = others.chain([id]).collect();
        let config = Config::new(id, &ids, self.timing, self.durability);
        let config = config.and_then(|config| config.joining(incarnation));
        config.expect("a valid cluster")
    }
}
