// SPDX-License-Identifier: Apache-2.0
//! Changes of the membership that a leader refuses.

use super::super::defects::{Defect, Defects};
use super::super::simulation::checks::Violation;
use super::super::{
    ChangeError, Consensus, MembershipChange, MembershipEntry, ProtocolVersion, Voter,
};
use super::super::{Message, ORIGINAL, Role};
use super::cluster::{Action, Cluster};

/// Three members that member 0 leads.
fn led() -> Cluster {
    let mut cluster = Cluster::new(3, Defects::default());
    assert_eq!(cluster.elect_by(0, &[1, 2]), Ok(true));
    assert_eq!(cluster.establish(0, &[0, 1, 2]), Ok(true));
    cluster
}

fn leader(cluster: &mut Cluster) -> &mut Consensus {
    cluster.nodes[0].core.as_mut().unwrap()
}

fn canvass(incarnation: i32) -> Message {
    Message::CanvassPosition {
        log_term: -1,
        position: 0,
        term: -1,
        version: ProtocolVersion::OWN_LEARNER,
        incarnation,
    }
}

#[test]
fn change_that_is_not_possible_is_refused_with_the_reason() {
    let mut cluster = led();
    let add = |id| MembershipChange::Add(id);
    let remove = |id| MembershipChange::Remove(id);
    let follower = cluster.nodes[1].core.as_mut().unwrap();
    assert_eq!(
        follower.change_membership(0, remove(2)),
        Err(ChangeError::NotLeader)
    );
    let core = leader(&mut cluster);
    let refused = |core: &mut Consensus, change| core.change_membership(0, change).unwrap_err();
    assert_eq!(refused(core, add(1)), ChangeError::AlreadyMember { id: 1 });
    assert_eq!(refused(core, add(3)), ChangeError::UnknownLearner { id: 3 });
    assert_eq!(refused(core, remove(3)), ChangeError::NoMember { id: 3 });
    // A node that canvasses under a new id, and has no log yet.
    core.receive(0, 3, &canvass(7));
    let commit = core.commit_position();
    let behind = ChangeError::Behind {
        id: 3,
        position: 0,
        commit,
    };
    assert_eq!(refused(core, add(3)), behind);
    assert_eq!(core.learners().collect::<Vec<_>>(), [3]);
}

#[test]
fn change_is_refused_while_a_member_is_official() {
    let mut cluster = led();
    let core = leader(&mut cluster);
    for peer in &mut core.peers {
        peer.is_taran = peer.id == 1;
    }
    let error = core.change_membership(0, MembershipChange::Remove(1));
    assert_eq!(error, Err(ChangeError::OfficialMembers { ids: vec![2] }));
    // The one that leaves does not matter.
    assert_eq!(
        core.change_membership(0, MembershipChange::Remove(2)),
        Ok(())
    );
}

#[test]
fn next_change_waits_until_the_former_is_committed() {
    let mut cluster = led();
    let core = leader(&mut cluster);
    assert_eq!(
        core.change_membership(0, MembershipChange::Remove(2)),
        Ok(())
    );
    let next = MembershipChange::Remove(1);
    let error = core.change_membership(0, next);
    assert_eq!(
        error,
        Err(ChangeError::InProgress),
        "it is not appended yet"
    );
    let entry = MembershipEntry {
        position: core.append_position() + 96,
        membership: core.next_membership().unwrap().clone(),
    };
    core.on_membership(0, &entry);
    assert_eq!(core.membership(), &entry, "it is in effect when appended");
    let error = core.change_membership(0, next);
    assert_eq!(
        error,
        Err(ChangeError::InProgress),
        "it is not committed yet"
    );
}

#[test]
fn change_that_would_stop_the_cluster_is_refused() {
    let mut cluster = led();
    let core = leader(&mut cluster);
    // Member 2 was not heard for long.
    for peer in &mut core.peers {
        peer.heard = if peer.id == 2 { -8 } else { 0 };
    }
    let error = core.change_membership(0, MembershipChange::Remove(1));
    let at_risk = ChangeError::QuorumAtRisk {
        heard: 1,
        quorum: 2,
    };
    assert_eq!(error, Err(at_risk));
}

#[test]
fn node_votes_only_for_a_candidate_that_means_it() {
    let mut cluster = Cluster::new(3, Defects::default());
    let core = leader(&mut cluster);
    assert_eq!(
        core.membership().membership.get(0),
        Some(Voter {
            id: 0,
            incarnation: ORIGINAL
        })
    );
    let request = |voter| Message::RequestVote {
        log_term: -1,
        position: 0,
        candidate_term: 4,
        version: ProtocolVersion::OWN,
        voter,
    };
    core.receive(0, 1, &request(7));
    assert_eq!(core.candidate_term(), -1, "the vote of another node");
    core.receive(0, 1, &request(ORIGINAL));
    assert_eq!(core.candidate_term(), 4);
}

/// Lets the member be elected, and delivers the votes of all voters.
fn elect_by_all(cluster: &mut Cluster, member: usize, voters: &[usize]) -> Result<(), Violation> {
    for &each in voters {
        cluster.take(Action::Timeout(each))?;
    }
    for _ in 0..32 {
        cluster.network.clear();
        for &voter in voters {
            cluster.tick_of(voter)?;
        }
        cluster.network.retain(|(_, to, _)| *to == member);
        cluster.tick_of(member)?;
        while cluster.deliver(|from, to, message| {
            from == member && voters.contains(&to) && matches!(message, Message::RequestVote { .. })
                || to == member && voters.contains(&from)
        })? {}
        let core = cluster.core(member);
        if core.is_some_and(|core| core.role() == Role::Leader) {
            cluster.network.clear();
            return Ok(());
        }
    }
    panic!("{member} is not elected");
}

/// A removal of member 4 is in the logs of 0 and 1 only. 4 has led without content, by the votes of 2 and 3. Now all others
/// elect 0, and 2 follows it; 1 stays behind. Then 0 and 2 die, and 4 stands again. Returns the number of committed entries before
/// that, and what follows.
fn removal_behind_a_prior_term(defects: Defects) -> (usize, Result<bool, Violation>) {
    let run = || -> Result<Cluster, Violation> {
        let mut cluster = Cluster::new(5, defects);
        assert!(cluster.elect_by(0, &[1, 2, 3, 4])?);
        assert!(cluster.establish(0, &[0, 1, 2, 3, 4])?);
        cluster.change(0, MembershipChange::Remove(4))?;
        cluster.serve_once(1)?;
        assert_eq!(cluster.nodes[1].log.len(), 2, "1 has the removal");
        cluster.crash(0);
        cluster.network.clear();
        assert!(cluster.elect_by(4, &[2, 3])?);
        cluster.crash(4);
        cluster.restart(0);
        elect_by_all(&mut cluster, 0, &[1, 2, 3])?;
        for _ in 0..40 {
            // The leader hears 1, and not the other way.
            cluster.take(Action::Timeout(1))?;
            cluster.tick_of(1)?;
            cluster.deliver(|from, to, _| (from, to) == (1, 0))?;
            for member in [0, 2] {
                cluster.tick_of(member)?;
                cluster.exchange(&[0, 2])?;
            }
            cluster.take(Action::Serve(2))?;
            cluster.exchange(&[0, 2])?;
        }
        cluster.crash(0);
        cluster.crash(2);
        cluster.restart(4);
        Ok(cluster)
    };
    let mut cluster = run().expect("no invariant breaks before");
    let committed = cluster.committed();
    (committed, cluster.elect_by(4, &[1, 3]))
}

#[test]
fn votes_of_all_settle_a_prior_term_only_if_the_membership_is_committed() {
    let defects = Defects::default().with(Defect::MembershipUnsettled);
    let (committed, lost) = removal_behind_a_prior_term(defects);
    assert_eq!(committed, 2);
    assert!(
        matches!(lost, Err(Violation::LeaderCompleteness { index: 1, .. })),
        "{lost:?}"
    );
    let (committed, kept) = removal_behind_a_prior_term(Defects::default());
    assert_eq!((committed, kept), (1, Ok(true)));
}
