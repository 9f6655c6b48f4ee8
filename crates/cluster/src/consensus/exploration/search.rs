// SPDX-License-Identifier: Apache-2.0
//! Breadth-first search over all steps of a cluster, with hashes of states that were seen.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::simulation::checks::Violation;
use super::cluster::{Action, Cluster};

/// Result of a search.
pub(super) struct Outcome {
    /// The violation that was found first, and the steps that lead to it.
    pub(super) found: Option<(Violation, Vec<Action>)>,
    pub(super) states: usize,
    /// Number of steps within which all states were visited.
    pub(super) depth: usize,
    /// No state is left: the search was exhaustive.
    pub(super) is_exhausted: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_exhausted { ", exhausted" } else { "" };
        write!(
            f,
            "{} states, {} steps deep{end}: {:?}",
            self.states, self.depth, self.found
        )
    }
}

fn hash(cluster: &Cluster) -> u64 {
    let mut hasher = DefaultHasher::new();
    cluster.hash(&mut hasher);
    hasher.finish()
}

/// Visits states in the order of their distance from the start, up to about `limit` of them.
pub(super) fn explore(start: &Cluster, limit: usize) -> Outcome {
    let mut seen = HashSet::from([hash(start)]);
    // Each visited state's predecessor and step.
    let mut steps: Vec<(usize, Action)> = Vec::new();
    let mut frontier = vec![(start.clone(), usize::MAX)];
    let mut depth = 0;
    while !frontier.is_empty() && seen.len() < limit {
        let mut next = Vec::new();
        for (cluster, at) in &frontier {
            for action in cluster.actions() {
                let mut successor = cluster.clone();
                if let Err(violation) = successor.apply(action) {
                    let mut path = vec![action];
                    let mut at = *at;
                    while let Some((before, action)) = steps.get(at) {
                        path.push(*action);
                        at = *before;
                    }
                    path.reverse();
                    return Outcome {
                        found: Some((violation, path)),
                        states: seen.len(),
                        depth,
                        is_exhausted: false,
                    };
                }
                if seen.insert(hash(&successor)) {
                    steps.push((*at, action));
                    next.push((successor, steps.len() - 1));
                }
            }
            if seen.len() >= limit {
                break;
            }
        }
        if seen.len() < limit {
            depth += 1;
        }
        frontier = next;
    }
    Outcome {
        found: None,
        states: seen.len(),
        depth,
        is_exhausted: frontier.is_empty(),
    }
}
