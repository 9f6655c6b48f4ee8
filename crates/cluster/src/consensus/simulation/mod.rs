// SPDX-License-Identifier: Apache-2.0
//! Simulation of the core alone, in virtual time: loss, duplication, reordering, partitions, crashes, power cuts, slow disks and
//! drifting clocks, from one seed (`docs/consensus.md`).

pub(super) mod checks;
pub(super) mod node;
mod schedule;
mod world;

use super::defects::{Defect, Defects};
use super::{Durability, Incarnation, MemberId, Nanos, Timing, Voter};
use checks::Violation;
use schedule::{Fault, MILLISECOND, Schedule};
use world::World;

/// Runs one schedule. Returns the number of steps.
fn run(schedule: &Schedule, defects: Defects) -> Result<u64, Violation> {
    let mut world = World::new(schedule, defects);
    world.run().map(|()| world.steps)
}

/// Removes faults, and switches others off, as long as the same invariant breaks.
fn shrink(mut schedule: Schedule, defects: Defects, violation: &Violation) -> Schedule {
    let breaks = |candidate: &Schedule| {
        run(candidate, defects).is_err_and(|found| found.name() == violation.name())
    };
    loop {
        let mut is_smaller = false;
        for index in (0..schedule.faults.len()).rev() {
            let mut candidate = schedule.clone();
            candidate.faults.remove(index);
            if breaks(&candidate) {
                schedule = candidate;
                is_smaller = true;
            }
        }
        let simpler: [fn(&mut Schedule); 5] = [
            |it| it.loss = 0,
            |it| it.duplicates = 0,
            |it| it.late = 0,
            |it| it.disk_delay = 0,
            |it| it.clocks.fill(1_000),
        ];
        for simplify in simpler {
            let mut candidate = schedule.clone();
            simplify(&mut candidate);
            if format!("{candidate:?}") != format!("{schedule:?}") && breaks(&candidate) {
                schedule = candidate;
                is_smaller = true;
            }
        }
        if !is_smaller {
            return schedule;
        }
    }
}

/// Runs schedules of these seeds, and panics with the smallest one if an invariant breaks. Returns the number of steps.
fn run_all(seeds: std::ops::Range<u64>) -> u64 {
    let mut steps = 0;
    for seed in seeds {
        let schedule = Schedule::random(seed);
        match run(&schedule, Defects::default()) {
            Ok(count) => steps += count,
            Err(violation) => {
                let small = shrink(schedule, Defects::default(), &violation);
                let mut world = World::new(&small, Defects::default());
                let violation = world.run();
                panic!(
                    "seed {seed}: {violation:?} in {small:#?} after {} steps\n{}",
                    world.steps,
                    world.describe()
                );
            }
        }
    }
    steps
}

/// Returns the first of `limit` seeds whose schedule breaks the invariant.
fn find(defects: Defects, invariants: &[&str], first: u64, limit: u64) -> Option<u64> {
    (first..first + limit).find(|seed| {
        let schedule = Schedule::random(*seed);
        run(&schedule, defects).is_err_and(|found| invariants.contains(&found.name()))
    })
}

#[test]
fn random_schedules_keep_all_invariants() {
    run_all(0..400);
}

/// `cargo xtask consensus` runs this with its number of seeds.
#[test]
#[ignore = "run by `cargo xtask consensus`"]
fn many_random_schedules_keep_all_invariants() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("TARAN_CONSENSUS_SEED", 1_000_000);
    let count = number("TARAN_CONSENSUS_SEEDS", 1_000);
    let started = std::time::Instant::now();
    let steps = run_all(first..first + count);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{count} schedules from seed {first}: {steps} steps in {seconds:.1} s, {:.0} schedules/s",
        count as f64 / seconds
    );
}

macro_rules! planted {
    ($($name:ident: $defect:ident from seed $first:literal breaks $invariants:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let defects = Defects::default().with(Defect::$defect);
                let found = find(defects, &$invariants, $first, 3_000);
                println!("found by seed {found:?}");
                assert!(found.is_some());
            }
        )*
    };
}

// The first seeds are those near which a schedule breaks the invariant, to keep `cargo test` short; from 0 on it takes at most
// 1,800 schedules.
planted! {
    member_that_votes_twice_breaks_election_safety: VotesTwice from seed 100 breaks ["election safety"];
    forgotten_truncation_breaks_log_matching: TruncationForgotten from seed 0 breaks ["log matching", "term list"];
    vote_without_regard_to_the_log_breaks_leader_completeness: VoteIgnoresLog from seed 150 breaks ["leader completeness"];
    commit_without_quorum_breaks_leader_completeness: SmallQuorum from seed 0 breaks ["leader completeness", "committed never lost"];
    commit_before_comparison_breaks_state_machine_safety: CommitUncompared from seed 0 breaks ["state machine safety"];
    unflushed_acknowledgement_loses_committed_entries: UnflushedAcknowledged from seed 0 breaks ["committed never lost"];
    endless_ballot_prevents_progress: EndlessBallot from seed 0 breaks ["progress"];
    membership_in_effect_at_the_commit_breaks_election_safety: MembershipAtCommit from seed 0 breaks ["election safety", "leader completeness", "state machine safety", "committed never lost"];
    membership_changed_before_the_last_change_is_committed_loses_entries: MembershipUnordered from seed 0 breaks ["election safety", "leader completeness", "state machine safety", "committed never lost"];
    node_that_counts_as_the_member_before_it_loses_entries: IncarnationIgnored from seed 0 breaks ["election safety", "leader completeness", "state machine safety", "committed never lost"];
    vote_that_is_not_durable_breaks_election_safety: VoteNotDurable from seed 1700 breaks ["election safety"];
}

/// A schedule of three members over a network and disks that take a millisecond, with these faults at 3 s.
fn calm(timing: Timing, seed: u64, faults: &[Fault]) -> Schedule {
    let at = 3_000 * MILLISECOND;
    Schedule {
        seed,
        members: 3,
        spares: 0,
        durability: Durability::QuorumDisk,
        timing,
        loss: 0,
        duplicates: 0,
        late: 0,
        delay: MILLISECOND,
        disk_delay: MILLISECOND,
        clocks: vec![1_000; 3],
        faults: faults.iter().map(|fault| (at, *fault)).collect(),
        end: at + 2 * timing.heartbeat_timeout,
    }
}

/// Returns the longest time without a leader that takes entries, and the member that leads in the end.
fn longest_gap(schedule: &Schedule) -> (Nanos, MemberId) {
    let mut world = World::new(schedule, Defects::default());
    assert_eq!(world.run(), Ok(()));
    let pairs = world.accepted.windows(2);
    let gap = pairs.map(|pair| pair[1] - pair[0]).max();
    let leader = world.leader().and_then(|leader| leader.try_into().ok());
    (
        gap.expect("entries are accepted"),
        leader.expect("a member leads"),
    )
}

/// The longest time without a leader that takes entries, after the leader of three members was killed.
fn failover(timing: Timing, seed: u64) -> Nanos {
    longest_gap(&calm(timing, seed, &[Fault::KillLeader])).0
}

/// Hands leadership of three members over to each of the others in turn, 20 ms after `fault` has struck that one.
/// Returns old leader, target, new leader, and the longest time without a leader that takes entries.
fn transfers(
    seed: u64,
    fault: impl Fn(usize) -> Option<Fault>,
) -> Vec<(MemberId, MemberId, MemberId, Nanos)> {
    let (_, leader) = longest_gap(&calm(Timing::fast(), seed, &[]));
    let transfer = |target: usize| {
        let to = target.try_into().expect("a member id");
        // Only the leader takes it.
        let commands = (0..3).map(|member| Fault::Transfer {
            member,
            to: Some(to),
        });
        let faults: Vec<Fault> = commands.collect();
        let mut schedule = calm(Timing::fast(), seed, &faults);
        if let Some(fault) = fault(target) {
            // Clients append meanwhile.
            let at = schedule.faults[0].0 - 20 * MILLISECOND;
            schedule.faults.insert(0, (at, fault));
        }
        let (gap, next) = longest_gap(&schedule);
        (leader, to, next, gap)
    };
    let transfers = (0..3).map(transfer);
    transfers.filter(|(_, to, ..)| *to != leader).collect()
}

#[test]
fn leadership_goes_to_the_member_that_is_named_within_milliseconds() {
    for seed in 0..20 {
        for (leader, to, next, gap) in transfers(seed, |_| None) {
            println!("seed {seed}: {leader} to {to} in {} us", gap / 1_000);
            assert_eq!(next, to, "seed {seed}");
            assert!(gap < 100 * MILLISECOND, "seed {seed}: {gap} ns");
        }
    }
}

#[test]
fn leader_goes_on_after_the_heartbeat_timeout_if_the_member_that_is_named_is_behind() {
    let timeout = Timing::fast().heartbeat_timeout;
    for seed in 0..20 {
        let stall = |member| {
            Some(Fault::Stall {
                member,
                time: timeout + 100 * MILLISECOND,
            })
        };
        for (leader, to, next, gap) in transfers(seed, stall) {
            println!(
                "seed {seed}: {leader} to {to} given up in {} us",
                gap / 1_000
            );
            assert_eq!(next, leader, "seed {seed}");
            // Clients append at least every 9 ms.
            let bound = timeout + 2 * 9 * MILLISECOND;
            assert!((timeout..bound).contains(&gap), "seed {seed}: {gap} ns");
        }
    }
}

/// Runs three members in calm with one spare node, and these faults. Returns the members in the end, and the longest time without
/// a leader that takes entries.
fn changed(seed: u64, faults: &[Fault]) -> (Vec<Voter>, Nanos) {
    let mut schedule = calm(Timing::fast(), seed, faults);
    schedule.spares = 1;
    schedule.clocks.push(1_000);
    schedule.end += 1_000 * MILLISECOND;
    let mut world = World::new(&schedule, Defects::default());
    assert_eq!(world.run(), Ok(()), "seed {seed}");
    let pairs = world.accepted.windows(2);
    let gap = pairs.map(|pair| pair[1] - pair[0]).max();
    let mut voters = world.membership().voters().to_vec();
    voters.sort_unstable_by_key(|voter| voter.id);
    (voters, gap.expect("entries are accepted"))
}

const fn voter(id: MemberId, incarnation: Incarnation) -> Voter {
    Voter { id, incarnation }
}

#[test]
fn node_that_joins_becomes_a_member_while_entries_are_accepted() {
    for seed in 0..20 {
        let (voters, gap) = changed(seed, &[Fault::Join { member: 3 }]);
        let expected = [voter(0, 0), voter(1, 0), voter(2, 0), voter(3, 1)];
        assert_eq!(voters, expected, "seed {seed}");
        assert!(gap < 20 * MILLISECOND, "seed {seed}: {gap} ns");
    }
}

#[test]
fn leader_that_is_removed_hands_over_within_milliseconds() {
    for seed in 0..20 {
        for member in 0..3 {
            let (voters, gap) = changed(seed, &[Fault::Leave { member }]);
            let id = member.try_into().expect("a member id");
            assert_eq!(voters.len(), 2, "seed {seed}");
            assert!(voters.iter().all(|voter| voter.id != id), "seed {seed}");
            assert!(gap < 100 * MILLISECOND, "seed {seed}: {gap} ns");
        }
    }
}

#[test]
fn member_that_lost_its_disk_is_replaced_under_its_id() {
    for seed in 0..20 {
        for member in 0..3 {
            let (voters, _) = changed(seed, &[Fault::Replace { member }]);
            let incarnations = voters.iter().map(|voter| voter.incarnation);
            let mut expected = [0; 3];
            expected[member] = 1;
            assert!(incarnations.eq(expected), "seed {seed}: {voters:?}");
        }
    }
}

/// D4: official timing takes more than ten seconds to replace a leader.
#[test]
fn d4_failover_takes_seconds_with_official_timing_only() {
    for seed in 0..10 {
        let official = failover(Timing::official(), seed);
        let fast = failover(Timing::fast(), seed);
        println!(
            "official {} ms, fast {} ms",
            official / MILLISECOND,
            fast / MILLISECOND
        );
        assert!(official > 10_000 * MILLISECOND, "{official}");
        assert!(fast < 400 * MILLISECOND, "{fast}");
    }
}
