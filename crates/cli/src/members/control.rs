// SPDX-License-Identifier: Apache-2.0
//! Verbs that set a control toggle (docs/spec/cluster.md §9.2).

use std::process::ExitCode;

use serde::Serialize;
use taran_cluster::module::{toggle, type_id};

use super::node::{Node, state_name};
use super::{Target, Transfer};
use crate::failure::Failure;
use crate::output;

const NEUTRAL: i64 = 1;
const SUSPENDED: i64 = 2;
const ACTIVE: i64 = 1;
const VALIDATE: i64 = 3;
const TERMINATING: i64 = 5;

/// An action of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Suspend = 2,
    Resume = 3,
    Snapshot = 4,
    Shutdown = 5,
    Abort = 6,
}

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::Suspend => "SUSPEND",
            Self::Resume => "RESUME",
            Self::Snapshot => "SNAPSHOT",
            Self::Shutdown => "SHUTDOWN",
            Self::Abort => "ABORT",
        }
    }

    /// Returns the state in which the consensus module takes it.
    const fn needed_state(self) -> i64 {
        match self {
            Self::Resume => SUSPENDED,
            _ => ACTIVE,
        }
    }
}

#[derive(Serialize)]
struct Done {
    action: &'static str,
    member_id: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshots: Option<i64>,
}

/// Sets the toggle of the leader, and waits for what can be seen of the action.
pub(super) fn run(target: &Target, action: Action) -> Result<ExitCode, Failure> {
    let node = Node::attach(&target.dir, target.timeout)?;
    let name = action.name();
    check_leader(&node, name, action.needed_state())?;
    let before = node.value(type_id::SNAPSHOT_COUNT);
    let gone = || Failure::Other("the consensus module has ended".to_owned());
    let toggle = node.counter(type_id::CONTROL_TOGGLE).ok_or_else(gone)?;
    let requested = action as i64;
    // A leader that is suspended keeps the toggle at SUSPEND, unless it was suspended by one before it.
    let is_set = toggle.compare_exchange(NEUTRAL, requested).is_ok()
        || action == Action::Resume && toggle.compare_exchange(SUSPENDED, requested).is_ok();
    if !is_set {
        return Err(Failure::Other(format!(
            "unable to {name}: another action is under way (control toggle {})",
            toggle.get()
        )));
    }
    let text = match action {
        Action::Snapshot => {
            node.wait("the snapshot was not taken", || {
                (node.value(type_id::CONTROL_TOGGLE) == Some(NEUTRAL)).then_some(())
            })?;
            if node.value(type_id::SNAPSHOT_COUNT) == before {
                return Err(Failure::Other(
                    "the snapshot was not taken: see 'taran members errors'".to_owned(),
                ));
            }
            "a snapshot was taken"
        }
        Action::Suspend => {
            node.wait("the cluster was not suspended", || {
                (node.value(type_id::MODULE_STATE) == Some(SUSPENDED)).then_some(())
            })?;
            "the cluster is suspended: it takes no messages until 'taran members resume'"
        }
        Action::Resume => {
            node.wait("the cluster was not resumed", || {
                (node.value(type_id::CONTROL_TOGGLE) == Some(NEUTRAL)).then_some(())
            })?;
            "the cluster is resumed"
        }
        // The member leaves its driver, and the driver may end with it.
        Action::Shutdown | Action::Abort => {
            node.wait("the leader did not begin to end", || {
                let has_ended = node.client.is_closed()
                    || node
                        .value(type_id::MODULE_STATE)
                        .is_none_or(|it| it >= TERMINATING);
                has_ended.then_some(())
            })?;
            "the leader ends, and has told the other members to end"
        }
    };
    let member_id = node.mark.member_id;
    if target.json {
        output::json(&Done {
            action: name,
            member_id,
            snapshots: node
                .value(type_id::SNAPSHOT_COUNT)
                .filter(|_| action == Action::Snapshot),
        })?;
    } else {
        output::text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that the member leads, and that its consensus module is in the state in which it takes the action.
fn check_leader(node: &Node, name: &str, needed_state: i64) -> Result<(), Failure> {
    if !node.is_leader() {
        let leader = node.members()?.leader_member_id;
        let text = if leader < 0 {
            format!("no member leads, unable to {name}: see 'taran members describe'")
        } else {
            format!(
                "member {} is not the leader (member {leader} is), unable to {name}: give the directory of the leader",
                node.mark.member_id
            )
        };
        return Err(Failure::Other(text));
    }
    let state = node.value(type_id::MODULE_STATE).unwrap_or_default();
    if state != needed_state {
        return Err(Failure::Other(format!(
            "unable to {name} as the consensus module is {}, but needs to be {}",
            state_name(state),
            state_name(needed_state)
        )));
    }
    Ok(())
}

#[derive(Serialize)]
struct Transferred {
    action: &'static str,
    member_id: i32,
    leader_member_id: i32,
}

/// Lets the leader hand leadership over, and waits until another member leads.
pub(super) fn transfer(transfer: &Transfer) -> Result<ExitCode, Failure> {
    let Transfer { target, to } = transfer;
    let node = Node::attach(&target.dir, target.timeout)?;
    let name = "TRANSFER";
    check_leader(&node, name, ACTIVE)?;
    let own = node.mark.member_id;
    let members = node.members()?;
    let mut others = members.members.iter().map(|it| it.member_id);
    if let Some(to) = to
        && (*to == own || !others.any(|id| id == *to))
    {
        return Err(Failure::Other(format!(
            "{to} is not the id of another member than the leader {own}, unable to {name}: see 'taran members list'"
        )));
    }
    let control = node.counter(type_id::TRANSFER_TOGGLE).ok_or_else(|| {
        Failure::Other(format!(
            "member {own} leads and is one of Aeron, which cannot hand leadership over; end it, so that the others elect a leader"
        ))
    })?;
    let requested = toggle::transfer_leadership(*to);
    if control.compare_exchange(NEUTRAL, requested).is_err() {
        return Err(Failure::Other(format!(
            "unable to {name}: another transfer is under way (transfer toggle {})",
            control.get()
        )));
    }
    let value = node.wait("the leader has not handed over", || {
        let value = node.value(type_id::TRANSFER_TOGGLE);
        (value != Some(requested)).then_some(value)
    })?;
    if value == Some(NEUTRAL) && node.is_leader() {
        return Err(Failure::Other(format!(
            "member {own} leads on: 'taran members errors {}' says why leadership is not handed over",
            target.dir.display()
        )));
    }
    let leader = node.wait("no member leads", || {
        let leader = node.members().ok()?.leader_member_id;
        (leader >= 0).then_some(leader)
    })?;
    if leader == own {
        return Err(Failure::Other(format!(
            "member {own} was elected again, as no other member stood in time; repeat it"
        )));
    }
    if let Some(to) = to
        && leader != *to
    {
        return Err(Failure::Other(format!(
            "member {leader} leads now, not {to}, which did not stand in time; repeat it at member {leader}"
        )));
    }
    if target.json {
        output::json(&Transferred {
            action: name,
            member_id: own,
            leader_member_id: leader,
        })?;
    } else {
        output::text(&format!("member {leader} leads\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets the member ask its archive for the recording of each snapshot.
pub(super) fn validate(target: &Target) -> Result<ExitCode, Failure> {
    let node = Node::attach(&target.dir, target.timeout)?;
    let toggle = node.counter(type_id::NODE_CONTROL_TOGGLE).ok_or_else(|| {
        Failure::Other("the member has no node control toggle: it is too old".to_owned())
    })?;
    if toggle.compare_exchange(NEUTRAL, VALIDATE).is_err() {
        return Err(Failure::Other(format!(
            "unable to validate the recording log: the member is in an election, or another action is under way (node \
             control toggle {})",
            toggle.get()
        )));
    }
    node.wait("the recording log was not validated", || {
        (node.value(type_id::NODE_CONTROL_TOGGLE) == Some(NEUTRAL)).then_some(())
    })?;
    if target.json {
        output::json(&Done {
            action: "VALIDATE_RECORDING_LOG",
            member_id: node.mark.member_id,
            snapshots: None,
        })?;
    } else {
        output::text("the recording log was validated: 'taran members recording-log' shows it\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
