// SPDX-License-Identifier: Apache-2.0
//! States of a driver's directory, as the page shows them.

use serde::Serialize;

use crate::attach::{AttachError, Attached, DriverState};

/// State of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct State {
    pub(super) kind: StateKind,
    /// Reason and remedy; empty if the driver is alive.
    pub(super) text: String,
    /// Time since which the driver has been in this state, in milliseconds since the epoch: the last heartbeat of one that
    /// does not send any more, else when the console saw the state first.
    pub(super) since_ms: i64,
}

/// Kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateKind {
    Alive,
    /// The driver has shut down in an orderly way.
    ShutDown,
    /// It was killed or has crashed.
    Dead,
    /// It sends no heartbeats.
    Silent,
    /// The directory has no driver.
    Absent,
    /// The file is being made.
    Starting,
    /// The file is of a version that is not supported.
    Foreign,
    /// The file cannot be read, or is damaged.
    Unreadable,
}

impl State {
    /// Returns the state of a driver whose file is mapped.
    pub(super) fn of(attached: &Attached, now_ms: i64) -> Self {
        let kind = match attached.state() {
            DriverState::Alive => StateKind::Alive,
            DriverState::ShutDown => StateKind::ShutDown,
            DriverState::Dead => StateKind::Dead,
            DriverState::Silent => StateKind::Silent,
        };
        let text = attached.check_alive().err();
        Self {
            kind,
            text: text.map(|gone| gone.to_string()).unwrap_or_default(),
            since_ms: match kind {
                StateKind::Dead | StateKind::Silent => attached.heartbeat_ms(),
                _ => now_ms,
            },
        }
    }

    /// Returns the state of a directory whose driver cannot be read.
    pub(super) fn of_error(error: &AttachError, now_ms: i64) -> Self {
        let kind = match error {
            AttachError::NoDriver { .. } => StateKind::Absent,
            AttachError::Version { .. } => StateKind::Foreign,
            error if error.is_transient() => StateKind::Starting,
            _ => StateKind::Unreadable,
        };
        Self {
            kind,
            text: error.to_string(),
            since_ms: now_ms,
        }
    }

    /// Returns the state with the time of the one before, if it is of the same kind.
    pub(super) fn after(self, before: Option<&State>) -> Self {
        let same = before.filter(|before| before.kind == self.kind);
        Self {
            since_ms: same.map_or(self.since_ms, |before| before.since_ms),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(kind: StateKind, since_ms: i64) -> State {
        State {
            kind,
            text: String::new(),
            since_ms,
        }
    }

    #[test]
    fn after_keeps_the_time_of_the_same_kind() {
        let absent = state(StateKind::Absent, 5);
        assert_eq!(state(StateKind::Absent, 9).after(Some(&absent)).since_ms, 5);
        assert_eq!(state(StateKind::Alive, 9).after(Some(&absent)).since_ms, 9);
        assert_eq!(state(StateKind::Alive, 9).after(None).since_ms, 9);
    }
}
