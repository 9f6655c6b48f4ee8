// SPDX-License-Identifier: Apache-2.0
//! The ways to lose a commit, each as a directed run and as a situation from which search finds the loss.

use super::super::defects::{Defect, Defects};
use super::super::simulation::checks::Violation;
use super::super::{Message, State};
use super::cluster::{Action, Budget, Cluster, steps_before_violation};
use super::search::{Outcome, explore};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const ALL: [usize; 3] = [A, B, C];

fn with(defects: &[Defect]) -> Defects {
    defects
        .iter()
        .fold(Defects::default(), |all, defect| all.with(*defect))
}

/// A cluster whose leader `leader` has one committed entry, the event of its term, which all members have.
fn started(defects: Defects, leader: usize) -> Result<Cluster, Violation> {
    let mut cluster = Cluster::new(3, defects);
    let voters: Vec<usize> = ALL.into_iter().filter(|member| *member != leader).collect();
    assert!(cluster.elect_by(leader, &voters)?);
    assert!(cluster.establish(leader, &ALL)?);
    Ok(cluster)
}

/// D1: the position of a member on another branch counts.
mod d1 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[Defect::CreditWithoutTerms];

    /// C has appended alone and died; B leads A, and has appended an entry that A has not.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = started(defects, C)?;
        cluster.append(C)?;
        cluster.append(C)?;
        cluster.crash(C);
        assert!(cluster.elect_by(B, &[A])?);
        assert!(cluster.establish(B, &[A, B])?);
        cluster.append(B)?;
        cluster.network.clear();
        Ok(cluster)
    }

    /// C canvasses with its longer log of the older term; B dies; A leads C.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        cluster.restart(C);
        cluster.tick_of(C)?;
        cluster.exchange(&[B, C])?;
        cluster.tick_of(B)?;
        cluster.crash(B);
        assert!(cluster.elect_by(A, &[C])?);
        assert!(cluster.establish(A, &[A, C])?);
        Ok(())
    }
}

/// D2: a follower that catches up counts before its list of terms has the term.
mod d2 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[Defect::CreditWithoutTerms, Defect::LateTermEntry];

    fn has_joined(cluster: &Cluster) -> bool {
        cluster
            .core(B)
            .is_some_and(|core| core.state() == State::Closed)
    }

    /// Delivers messages between A and B, except acknowledgements of B before it has joined: so A appends nothing before.
    fn exchange_until_joined(cluster: &mut Cluster) -> Result<(), Violation> {
        for _ in 0..64 {
            let is_held = !has_joined(cluster);
            cluster.network.retain(|(from, to, message)| {
                let is_acknowledgement = matches!(message, Message::AppendPosition { .. });
                *from != C && *to != C && !(is_held && *from == B && is_acknowledgement)
            });
            if cluster.network.is_empty() {
                break;
            }
            cluster.take(Action::Deliver(0))?;
        }
        Ok(())
    }

    /// A led the second term; B joined it, got nothing of it, and died; C caught up with what A appended, without a commit
    /// position. A committed that, and died. B is back.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = started(defects, C)?;
        cluster.crash(C);
        assert!(cluster.elect_by(A, &[B])?);
        for _ in 0..40 {
            if cluster.is_leader(A) {
                break;
            }
            for member in [A, B] {
                cluster.tick_of(member)?;
                exchange_until_joined(&mut cluster)?;
                if !has_joined(&cluster) {
                    cluster.serve_once(B)?;
                }
            }
        }
        assert!(cluster.is_leader(A));
        assert_eq!(cluster.nodes[B].log.len(), 1, "B has nothing of the term");
        cluster.crash(B);
        cluster.append(A)?;
        cluster.restart(C);
        let catches_up = |cluster: &Cluster| {
            cluster
                .core(C)
                .is_some_and(|core| core.state() == State::FollowerCatchup)
        };
        for _ in 0..40 {
            if catches_up(&cluster) {
                break;
            }
            for member in [A, C] {
                cluster.tick_of(member)?;
                cluster.exchange(&[A, C])?;
            }
            if !catches_up(&cluster) {
                cluster.serve_once(C)?;
                cluster.exchange(&[A, C])?;
            }
        }
        assert!(catches_up(&cluster));
        cluster.network.clear();
        for _ in 0..2 {
            cluster.serve_once(C)?;
            while cluster.deliver(|_, to, _| to == A)? {}
            cluster.network.clear();
        }
        assert_eq!(cluster.committed(), 3, "A has committed what C has");
        cluster.crash(A);
        cluster.restart(B);
        Ok(cluster)
    }

    /// B tries to lead C.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        if !cluster.elect_by(B, &[C])? {
            assert!(cluster.elect_by(C, &[B])?);
            assert!(cluster.establish(C, &[B, C])?);
        }
        Ok(())
    }
}

/// D3, figure 8 of the Raft paper: an entry of an older term is committed while a log of a term in between may win.
mod d3 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[Defect::PriorTermUnchecked, Defect::LateTermEntry];

    /// A had an entry of the first term alone; B was elected in the second, which only B knows, and died; A leads the third, and C
    /// has replicated the entry and says so. A dies. B is back.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = started(defects, A)?;
        cluster.append(A)?;
        cluster.crash(A);
        assert!(cluster.elect_by(B, &[C])?);
        assert_eq!(cluster.core(B).map(|core| core.terms().log_term()), Some(1));
        cluster.crash(B);
        cluster.restart(A);
        assert!(cluster.elect_by(A, &[C])?);
        assert!(cluster.run(&[A, C], |cluster| cluster.nodes[C].log.len() == 2)?);
        cluster.crash(A);
        cluster.network.clear();
        cluster.restart(B);
        Ok(cluster)
    }

    /// B tries to lead C.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        assert_eq!(cluster.committed(), 2, "A has committed the entry");
        if !cluster.elect_by(B, &[C])? {
            assert!(cluster.elect_by(C, &[B])?);
            assert!(cluster.establish(C, &[B, C])?);
        }
        Ok(())
    }
}

/// D14: a vote that is not on disk is given twice.
mod d14 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[Defect::VoteNotDurable];

    /// A stood; C, asked for its vote, lost its power before anything was written, and is back.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = Cluster::new(3, defects);
        cluster.has_fast_disks = false;
        let _ = cluster.elect_by(A, &[C])?;
        cluster.network.clear();
        cluster.crash(C);
        cluster.restart(C);
        Ok(cluster)
    }

    /// B stands in the same term.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        let _ = cluster.elect_by(B, &[C])?;
        Ok(())
    }
}

/// D28: a member acknowledges for a leader of a lower term than it has voted in.
mod d28 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[Defect::LowerTermFollowed];

    /// A leads; B has voted for C in the next term, and C has not got the vote yet.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = started(defects, A)?;
        for member in [B, C] {
            cluster.take(Action::Timeout(member))?;
        }
        cluster.network.clear();
        cluster.tick_of(B)?;
        assert!(cluster.deliver(|from, to, _| (from, to) == (B, C))?);
        for _ in 0..8 {
            let stands = cluster
                .core(C)
                .is_some_and(|core| core.state() == State::CandidateBallot);
            if !stands {
                cluster.tick_of(C)?;
            }
        }
        let asks = |from, to, message: &Message| {
            (from, to) == (C, B) && matches!(message, Message::RequestVote { .. })
        };
        assert!(cluster.deliver(asks)?);
        cluster.network.retain(|(from, to, message)| {
            (*from, *to) == (B, C)
                && matches!(
                    message,
                    Message::Vote {
                        is_granted: true,
                        ..
                    }
                )
        });
        assert_eq!(cluster.network.len(), 1, "the vote of B is on its way");
        Ok(cluster)
    }

    /// B hears A again, and follows it if it may; A commits; C gets the vote.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        let vote = cluster.network[0];
        cluster.network.clear();
        cluster.append(A)?;
        assert!(cluster.run(&[A, B], |cluster| cluster.committed() >= 2)?);
        cluster.network = vec![vote];
        for member in [A, B, A, B] {
            cluster.tick_of(member)?;
        }
        let is_vote = |from, to, message: &Message| (from, to, *message) == vote;
        cluster.deliver(is_vote).map(|_| ())
    }
}

/// D24: lists of terms with fillers are compared in place of logs.
mod d24 {
    use super::*;

    pub(super) const OFFICIAL: &[Defect] = &[
        Defect::TermListTrusted,
        Defect::LateTermEntry,
        Defect::PriorTermUnchecked,
    ];

    /// A has an entry of the first term alone; C led the second and has its event alone; A leads B in the third.
    pub(super) fn situation(defects: Defects) -> Result<Cluster, Violation> {
        let mut cluster = started(defects, A)?;
        cluster.append(A)?;
        cluster.crash(A);
        assert!(cluster.elect_by(C, &[B])?);
        // B reports that it has the base of the term, and dies before it has anything of it.
        for _ in 0..40 {
            if cluster.is_leader(C) {
                break;
            }
            cluster.run(&[B, C], |cluster| {
                cluster.is_leader(C)
                    || cluster
                        .core(B)
                        .is_some_and(|core| core.state() == State::FollowerReplay)
            })?;
            cluster.tick_of(C)?;
            cluster.network.retain(|(_, to, _)| *to == C);
            cluster.exchange(&[B, C])?;
        }
        assert!(cluster.is_leader(C));
        cluster.crash(B);
        cluster.crash(C);
        cluster.restart(A);
        cluster.restart(B);
        cluster.network.clear();
        if cluster.elect_by(A, &[B])? {
            assert!(cluster.establish(A, &[A, B])?);
        } else {
            // B has the TERM entry of the second term: A may not lead it, and follows.
            assert!(cluster.elect_by(B, &[A])?);
            assert!(cluster.establish(B, &[A, B])?);
        }
        Ok(cluster)
    }

    /// C returns.
    pub(super) fn end(cluster: &mut Cluster) -> Result<(), Violation> {
        cluster.restart(C);
        let leader = if cluster.is_leader(A) { A } else { B };
        assert!(cluster.establish(leader, &ALL)?);
        Ok(())
    }
}

/// Bounds of a search.
const BUDGET: Budget = Budget {
    crashes: 1,
    appends: 1,
    terms: 4,
    messages: 5,
};

/// Number of steps before the loss at which a search with the official rule starts.
const STEPS: usize = 5;

fn search(mut start: Cluster, limit: usize) -> Outcome {
    start.network.truncate(BUDGET.messages - 1);
    start.budget = BUDGET;
    explore(&start, limit)
}

/// Number of states that `cargo test` visits with our rules; `TARAN_CONSENSUS_STATES` overrides it.
fn limit() -> usize {
    let value = std::env::var("TARAN_CONSENSUS_STATES").ok();
    value.map_or(5_000, |text| text.parse().expect("a number"))
}

macro_rules! stories {
    ($($module:ident: $story:ident, $search:ident;)*) => {
        $(
            #[test]
            fn $story() {
                let official = with($module::OFFICIAL);
                let loss = $module::situation(official).and_then(|mut cluster| $module::end(&mut cluster));
                assert!(loss.is_err(), "no loss with the official rule");
                let ours = $module::situation(Defects::default())
                    .and_then(|mut cluster| $module::end(&mut cluster));
                assert_eq!(ours, Ok(()), "a loss with our rules");
            }

            #[test]
            fn $search() {
                let before = steps_before_violation(STEPS, || {
                    $module::situation(with($module::OFFICIAL)).and_then(|mut cluster| $module::end(&mut cluster))
                });
                let official = search(before, 200_000);
                println!("official: {official}");
                assert!(official.found.is_some(), "no loss found: {official}");
                let ours = $module::situation(Defects::default());
                let ours = search(ours.expect("the situation itself loses nothing"), limit());
                println!("ours: {ours}");
                assert!(ours.found.is_none(), "{ours}");
            }
        )*
    };
}

stories! {
    d1: d1_position_of_another_branch_counts_only_officially, search_from_d1_finds_the_official_loss_only;
    d2: d2_catch_up_without_the_term_counts_only_officially, search_from_d2_finds_the_official_loss_only;
    d3: d3_entry_of_an_older_term_is_committed_only_officially, search_from_d3_finds_the_official_loss_only;
    d14: d14_vote_is_given_twice_only_officially, search_from_d14_finds_the_official_loss_only;
    d24: d24_fillers_hide_divergence_only_officially, search_from_d24_finds_the_official_loss_only;
    d28: d28_lower_term_is_acknowledged_only_officially, search_from_d28_finds_the_official_loss_only;
}
