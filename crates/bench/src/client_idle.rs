// SPDX-License-Identifier: Apache-2.0
//! Idle strategy of the benchmark's own threads.

use std::fmt;
use std::str::FromStr;
use std::thread;

/// Strategy of a benchmark's thread between two polls, the same for all implementations of a comparison.
///
/// A yield is a system call of about 0.3 us. It belongs into a measurement only if other threads need the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientIdle {
    /// Yields the core, for threads that share it with a driver or with another client.
    #[default]
    Yield,
    /// Spins with a pause instruction, for threads with a core each.
    Spin,
}

impl ClientIdle {
    /// Idles once.
    #[inline]
    pub fn idle(self) {
        match self {
            ClientIdle::Yield => thread::yield_now(),
            ClientIdle::Spin => std::hint::spin_loop(),
        }
    }
}

impl fmt::Display for ClientIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientIdle::Yield => "yield",
            ClientIdle::Spin => "spin",
        })
    }
}

impl FromStr for ClientIdle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [ClientIdle::Yield, ClientIdle::Spin]
            .into_iter()
            .find(|idle| idle.to_string() == text)
            .ok_or_else(|| format!("{text:?} is not an idle strategy: use yield or spin"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_idle_from_its_name_is_equal() {
        for idle in [ClientIdle::Yield, ClientIdle::Spin] {
            assert_eq!(idle.to_string().parse(), Ok(idle));
        }
    }

    #[test]
    fn client_idle_from_unknown_name_is_rejected_with_the_valid_names() {
        let error = "sleep".parse::<ClientIdle>().expect_err("no such strategy");
        assert_eq!(
            error,
            "\"sleep\" is not an idle strategy: use yield or spin"
        );
    }
}
