// SPDX-License-Identifier: Apache-2.0
//! After the network is restored, every live flow makes progress within a bound.
//!
//! Input: the flows that have not delivered everything yet, and the deadline.

use std::time::Duration;

use super::{Violation, violation};

/// Checks that no flow is left after the deadline.
///
/// # Errors
/// There are some.
pub fn check<'f>(
    stuck: impl Iterator<Item = &'f str>,
    elapsed: Duration,
    until: Duration,
) -> Result<(), Violation> {
    let stuck: Vec<_> = stuck.collect();
    if elapsed > until && !stuck.is_empty() {
        violation!(
            "live flows made no progress in time after the network was restored:\n  {}",
            stuck.join("\n  ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuck_flow_after_the_deadline_is_a_violation() {
        let at = Duration::from_secs;
        check(["a to b"].into_iter(), at(9), at(9)).unwrap();
        check([].into_iter(), at(10), at(9)).unwrap();
        let Violation(found) = check(["a to b"].into_iter(), at(10), at(9)).unwrap_err();
        assert!(found.ends_with("a to b"), "{found}");
    }
}
