// SPDX-License-Identifier: Apache-2.0
//! Verbs that show the state of a running member.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use taran_cluster::module::type_id;
use taran_cluster::protocol::{ClusterMembersExtendedResponse, MemberStatus};

use super::Target;
use super::node::{ELECTION_CLOSED as CLOSED, Node, state_name};
use crate::failure::Failure;
use crate::output;
use crate::printable;

/// States of an election by the value of its counter, each with what the member does in it.
const ELECTION_STATES: [(&str, &str); 17] = [
    ("INIT", "it leaves the log of the term before"),
    (
        "CANVASS",
        "it asks all members for the ends of their logs; it stands when a quorum has answered, none of which has a longer log",
    ),
    ("NOMINATE", "it will stand after a random delay"),
    ("CANDIDATE_BALLOT", "it stands, and waits for votes"),
    (
        "FOLLOWER_BALLOT",
        "it has voted for another member, and waits for the result",
    ),
    (
        "LEADER_LOG_REPLICATION",
        "it is elected, and waits until a quorum has its log",
    ),
    (
        "LEADER_REPLAY",
        "it is elected, and applies the rest of its log to the services",
    ),
    (
        "LEADER_INIT",
        "it is elected, and waits until its log is recorded and its services have joined it",
    ),
    (
        "LEADER_READY",
        "it is elected, and waits until a quorum has joined its log",
    ),
    (
        "FOLLOWER_LOG_REPLICATION",
        "it follows the leader, and replicates what it missed of its log",
    ),
    (
        "FOLLOWER_REPLAY",
        "it follows the leader, and applies the rest of its own log to the services",
    ),
    (
        "FOLLOWER_CATCHUP_INIT",
        "it follows the leader, and asks for a replay of what it missed",
    ),
    (
        "FOLLOWER_CATCHUP_AWAIT",
        "it follows the leader, and waits for the replay of what it missed",
    ),
    (
        "FOLLOWER_CATCHUP",
        "it follows the leader, and receives what it missed",
    ),
    (
        "FOLLOWER_LOG_INIT",
        "it follows the leader, and joins its log",
    ),
    (
        "FOLLOWER_LOG_AWAIT",
        "it follows the leader, and waits for its log",
    ),
    (
        "FOLLOWER_READY",
        "it follows the leader, and has joined its log",
    ),
];

fn election_state(value: i64) -> (String, &'static str) {
    let known = usize::try_from(value)
        .ok()
        .and_then(|at| ELECTION_STATES.get(at));
    match known {
        Some((name, meaning)) => ((*name).to_owned(), *meaning),
        None if value == CLOSED => ("CLOSED".to_owned(), "it is over"),
        None => (value.to_string(), "this tool does not know that state"),
    }
}

fn role_name(value: i64) -> &'static str {
    match value {
        0 => "FOLLOWER",
        1 => "CANDIDATE",
        2 => "LEADER",
        _ => "UNKNOWN",
    }
}

/// A member as it is shown. What is not known is left out.
#[derive(Serialize)]
struct Shown<'a> {
    member_id: i32,
    is_leader: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    leadership_term_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_position: Option<i64>,
    /// Bytes that the leader has, and this member has not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heard_ms_ago: Option<i64>,
    ingress_endpoint: &'a str,
    consensus_endpoint: &'a str,
    log_endpoint: &'a str,
    catchup_endpoint: &'a str,
    archive_endpoint: &'a str,
}

impl<'a> Shown<'a> {
    fn of(member: &'a MemberStatus, members: &ClusterMembersExtendedResponse) -> Self {
        let known = |value: i64| (value >= 0).then_some(value);
        let leader = members
            .members
            .iter()
            .find(|it| it.member_id == members.leader_member_id);
        let log_position = known(member.log_position);
        let leads = known(leader.map_or(-1, |it| it.log_position));
        let heard = known(member.time_of_last_append_ns);
        let [ingress, consensus, log, catchup, archive] = &member.endpoints;
        Self {
            member_id: member.member_id,
            is_leader: member.member_id == members.leader_member_id,
            leadership_term_id: known(member.leadership_term_id),
            log_position,
            behind: leads
                .zip(log_position)
                .map(|(leads, own)| (leads - own).max(0)),
            heard_ms_ago: heard
                .map(|at| (members.current_time_ns.saturating_sub(at) / 1_000_000).max(0)),
            ingress_endpoint: ingress,
            consensus_endpoint: consensus,
            log_endpoint: log,
            catchup_endpoint: catchup,
            archive_endpoint: archive,
        }
    }
}

#[derive(Serialize)]
struct Described<'a> {
    cluster_id: i32,
    member_id: i32,
    pid: i64,
    state: String,
    role: &'static str,
    election_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_member_id: Option<i32>,
    leadership_term_id: i64,
    commit_position: i64,
    elections: i64,
    snapshots: i64,
    errors: i64,
    timed_out_clients: i64,
    quorum: usize,
    members: Vec<Shown<'a>>,
    findings: Vec<String>,
}

/// Lists the members.
pub(super) fn list(target: &Target) -> Result<ExitCode, Failure> {
    let node = Node::attach(&target.dir, target.timeout)?;
    let members = node.members()?;
    let shown: Vec<_> = members
        .members
        .iter()
        .map(|member| Shown::of(member, &members))
        .collect();
    if target.json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for member in &shown {
        let mark = if member.is_leader { " leader" } else { "" };
        let or_unknown = |value: Option<i64>| value.map_or("?".to_owned(), |it| it.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}{mark} term={} position={} ingress={} consensus={} log={} catchup={} archive={}",
            member.member_id,
            or_unknown(member.leadership_term_id),
            or_unknown(member.log_position),
            printable::one_line(member.ingress_endpoint),
            printable::one_line(member.consensus_endpoint),
            printable::one_line(member.log_endpoint),
            printable::one_line(member.catchup_endpoint),
            printable::one_line(member.archive_endpoint),
        );
    }
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Says what goes on.
pub(super) fn describe(target: &Target) -> Result<ExitCode, Failure> {
    let node = Node::attach(&target.dir, target.timeout)?;
    let members = node.members()?;
    let value = |id| node.value(id).unwrap_or_default();
    let election = value(type_id::ELECTION_STATE);
    let shown: Vec<_> = members
        .members
        .iter()
        .map(|member| Shown::of(member, &members))
        .collect();
    let own = node.mark.member_id;
    let leader = (members.leader_member_id >= 0).then_some(members.leader_member_id);
    let quorum = shown.len() / 2 + 1;
    let findings = findings(own, leader, election, quorum, &shown);
    let described = Described {
        cluster_id: node.mark.cluster_id,
        member_id: own,
        pid: node.mark.pid,
        state: state_name(value(type_id::MODULE_STATE)),
        role: role_name(value(type_id::NODE_ROLE)),
        election_state: election_state(election).0,
        leader_member_id: leader,
        leadership_term_id: node.value(type_id::LEADERSHIP_TERM_ID).unwrap_or(-1),
        commit_position: value(type_id::COMMIT_POSITION),
        elections: value(type_id::ELECTION_COUNT),
        snapshots: value(type_id::SNAPSHOT_COUNT),
        errors: value(type_id::ERRORS),
        timed_out_clients: value(type_id::TIMED_OUT_CLIENTS),
        quorum,
        members: shown,
        findings,
    };
    if target.json {
        output::json(&described)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "member {} of cluster {} (pid {}): {}, {}, term {}, commit position {}\n",
        described.member_id,
        described.cluster_id,
        described.pid,
        described.state,
        described.role,
        described.leadership_term_id,
        described.commit_position,
    );
    for finding in &described.findings {
        let _ = writeln!(text, "{finding}");
    }
    let _ = writeln!(
        text,
        "{} elections, {} snapshots, {} clients timed out, {} errors{}",
        described.elections,
        described.snapshots,
        described.timed_out_clients,
        described.errors,
        if described.errors > 0 {
            " ('taran members errors')"
        } else {
            ""
        }
    );
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what an operator wants to know, one sentence each.
fn findings(
    own: i32,
    leader: Option<i32>,
    election: i64,
    quorum: usize,
    members: &[Shown<'_>],
) -> Vec<String> {
    let mut findings = Vec::new();
    match leader {
        Some(leader) if leader == own && election == CLOSED => {
            findings.push("this member leads".to_owned());
        }
        Some(leader) if leader == own => {
            findings.push("this member is elected, and does not lead yet".to_owned());
        }
        Some(leader) => findings.push(format!("member {leader} leads")),
        None => findings.push("no member leads, as far as this one knows".to_owned()),
    }
    if election != CLOSED {
        let (name, meaning) = election_state(election);
        findings.push(format!(
            "an election goes on; this member is in {name}: {meaning}"
        ));
        let others = members.iter().filter(|member| member.member_id != own);
        let (heard, silent): (Vec<_>, Vec<_>) =
            others.partition(|member| member.log_position.is_some());
        if heard.len() + 1 < quorum {
            let silent: Vec<String> = silent
                .iter()
                .map(|it| {
                    let endpoint = printable::one_line(it.consensus_endpoint);
                    format!("{} at {endpoint}", it.member_id)
                })
                .collect();
            findings.push(format!(
                "{quorum} of {} members are needed, and no answer came from {}: start them, or check that their consensus \
                 endpoints can be reached",
                members.len(),
                silent.join(", ")
            ));
        }
    }
    for member in members {
        if Some(member.member_id) == leader {
            continue;
        }
        let id = member.member_id;
        let name = if id == own {
            "this member".to_owned()
        } else {
            format!("member {id}")
        };
        let heard = member.heard_ms_ago.filter(|_| id != own);
        let heard = heard.map_or(String::new(), |ms| format!(", heard {ms} ms ago"));
        match (member.behind, member.log_position) {
            (Some(0), _) => findings.push(format!("{name} has the whole log{heard}")),
            (Some(bytes), _) => findings.push(format!("{name} is {bytes} bytes behind{heard}")),
            (None, Some(position)) => {
                findings.push(format!("the log of {name} ends at {position}{heard}"));
            }
            (None, None) if leader.is_some_and(|leader| leader != own) => {
                findings.push(format!("{name}: ask the leader, to which it reports"));
            }
            (None, None) => findings.push(format!("{name} has not reported")),
        }
    }
    findings
}

/// Tells whether the member leads.
pub(super) fn is_leader(target: &Target) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Answer {
        member_id: i32,
        is_leader: bool,
    }
    let node = Node::attach(&target.dir, target.timeout)?;
    let is_leader = node.is_leader();
    if target.json {
        output::json(&Answer {
            member_id: node.mark.member_id,
            is_leader,
        })?;
    }
    Ok(ExitCode::from(u8::from(!is_leader)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(member_id: i32, position: Option<i64>, behind: Option<i64>) -> Shown<'static> {
        Shown {
            member_id,
            is_leader: false,
            leadership_term_id: position.map(|_| 3),
            log_position: position,
            behind,
            heard_ms_ago: position.map(|_| 20),
            ingress_endpoint: "a:1",
            consensus_endpoint: "a:2",
            log_endpoint: "a:3",
            catchup_endpoint: "a:4",
            archive_endpoint: "a:5",
        }
    }

    #[test]
    fn findings_say_who_leads_and_who_is_behind() {
        let members = [
            member(0, Some(960), Some(0)),
            member(1, Some(960), Some(0)),
            member(2, Some(480), Some(480)),
        ];
        let findings = findings(0, Some(0), CLOSED, 2, &members);
        assert_eq!(
            findings,
            [
                "this member leads",
                "member 1 has the whole log, heard 20 ms ago",
                "member 2 is 480 bytes behind, heard 20 ms ago"
            ]
        );
    }

    #[test]
    fn findings_say_who_is_missing_in_an_election() {
        let members = [
            member(0, Some(960), None),
            member(1, None, None),
            member(2, None, None),
        ];
        let findings = findings(0, None, 1, 2, &members);
        assert!(
            findings[1].contains("this member is in CANVASS"),
            "{findings:?}"
        );
        assert!(
            findings[2].starts_with(
                "2 of 3 members are needed, and no answer came from 1 at a:2, 2 at a:2"
            ),
            "{findings:?}"
        );
    }
}
