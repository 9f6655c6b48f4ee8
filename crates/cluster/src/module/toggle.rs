// SPDX-License-Identifier: Apache-2.0
//! Values of the control toggles (`docs/spec/cluster.md` §9.2). A tool changes a toggle from [`NEUTRAL`] to an action; the member
//! changes it back.

use crate::consensus::MemberId;

/// This member does not lead, or there is an election.
pub const INACTIVE: i64 = 0;
/// The member takes an action.
pub const NEUTRAL: i64 = 1;
/// Takes no more messages of clients.
pub const SUSPEND: i64 = 2;
/// Takes messages of clients again.
pub const RESUME: i64 = 3;
/// Takes a snapshot on all members.
pub const SNAPSHOT: i64 = 4;
/// Takes a snapshot, then ends all members.
pub const SHUTDOWN: i64 = 5;
/// Ends all members.
pub const ABORT: i64 = 6;
/// Takes a snapshot on standby members.
pub const STANDBY_SNAPSHOT: i64 = 7;
/// Hands leadership over to any member: a value of the transfer toggle, which official members do not have.
pub const TRANSFER_LEADERSHIP: i64 = 0x100;

/// Values of the toggle of the node.
pub mod node {
    /// Fetches snapshots of standby members.
    pub const REPLICATE_STANDBY_SNAPSHOT: i64 = 2;
    /// Invalidates snapshots whose recordings the archive does not have.
    pub const VALIDATE_RECORDING_LOG: i64 = 3;
}

/// Returns the value of the transfer toggle that hands leadership over to this member, or to any.
#[must_use]
pub const fn transfer_leadership(to: Option<MemberId>) -> i64 {
    match to {
        None => TRANSFER_LEADERSHIP,
        // The id as it is, in the upper half.
        Some(id) => (id as i64) << 32 | TRANSFER_LEADERSHIP | 1,
    }
}

/// Returns the member that a value hands leadership over to; the inner none means any.
#[must_use]
pub const fn transfer_target(value: i64) -> Option<Option<MemberId>> {
    match value & 0xffff_ffff {
        TRANSFER_LEADERSHIP if value == TRANSFER_LEADERSHIP => Some(None),
        low if low == TRANSFER_LEADERSHIP | 1 => Some(Some((value >> 32) as MemberId)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_of_a_hand_over_is_in_its_value_and_other_values_have_none() {
        for to in [None, Some(0), Some(7), Some(-3), Some(i32::MAX)] {
            assert_eq!(transfer_target(transfer_leadership(to)), Some(to));
        }
        for value in (INACTIVE..=STANDBY_SNAPSHOT).chain([0x102, 1 << 32, i64::MIN]) {
            assert_eq!(transfer_target(value), None, "{value}");
        }
    }
}
