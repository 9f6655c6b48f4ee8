// SPDX-License-Identifier: Apache-2.0
//! Exploration of small clusters, and the ways to lose a commit (`docs/spec/cluster.md` §12.2).
//!
//! A *story* is a directed run that ends in a loss if parts of the official rules are switched on, and in none with ours. From the
//! situation before its last steps, breadth-first search over all steps finds the loss by itself, and none with our rules.

mod cluster;
mod membership;
mod search;
mod stories;
