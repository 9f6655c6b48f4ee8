//! When the network is whole again, every live flow moves again within a bound.
//!
//! Input: the flows that have not delivered everything yet, and the time until which they must have.

use std::time::Duration;

use super::{Violation, violation};

/// Holds the time against the flows that are left.
///
/// # Errors
/// There are some, and the time is over.
pub fn look<'f>(
    stuck: impl Iterator<Item = &'f str>,
    elapsed: Duration,
    until: Duration,
) -> Result<(), Violation> {
    let stuck: Vec<_> = stuck.collect();
    if elapsed > until && !stuck.is_empty() {
        violation!(
            "the network is whole, and live flows have not moved in time:\n  {}",
            stuck.join("\n  ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_stands_still_is_found_when_the_time_is_over() {
        let at = Duration::from_secs;
        look(["a to b"].into_iter(), at(9), at(9)).unwrap();
        look([].into_iter(), at(10), at(9)).unwrap();
        let Violation(found) = look(["a to b"].into_iter(), at(10), at(9)).unwrap_err();
        assert!(found.ends_with("a to b"), "{found}");
    }
}
