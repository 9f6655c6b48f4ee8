// SPDX-License-Identifier: Apache-2.0
//! Type ids of the counters of a consensus module (`docs/spec/cluster.md` §9.4).

/// State of the consensus module.
pub const MODULE_STATE: i32 = 200;
/// Role of the member.
pub const NODE_ROLE: i32 = 201;
/// Toggle that controls the cluster, at the leader.
pub const CONTROL_TOGGLE: i32 = 202;
/// Commit position.
pub const COMMIT_POSITION: i32 = 203;
/// State from which containers learn what to load.
pub const RECOVERY_STATE: i32 = 204;
/// Number of snapshots.
pub const SNAPSHOT_COUNT: i32 = 205;
/// State of the election.
pub const ELECTION_STATE: i32 = 207;
/// Number of errors.
pub const ERRORS: i32 = 212;
/// Number of clients that timed out.
pub const TIMED_OUT_CLIENTS: i32 = 213;
/// Longest duty cycle; the type behind it counts those beyond the threshold.
pub const MAX_CYCLE_TIME: i32 = 216;
/// Toggle that controls one member.
pub const NODE_CONTROL_TOGGLE: i32 = 233;
/// Longest snapshot; the type behind it counts those beyond the threshold.
pub const MAX_SNAPSHOT_DURATION: i32 = 234;
/// Number of elections.
pub const ELECTION_COUNT: i32 = 238;
/// Term of the leader.
pub const LEADERSHIP_TERM_ID: i32 = 239;
/// Toggle by which the leader hands leadership over. It is of Taran: type ids from 1000 on are not Aeron's.
pub const TRANSFER_TOGGLE: i32 = 3_200;
