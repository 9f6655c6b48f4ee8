// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets for all external input: the network, memory shared with other processes, files and texts.
//!
//! A target is a function of arbitrary bytes. It asserts invariants that hold for all inputs: bounded work and memory,
//! results in range, texts that parse to what was printed, and undisturbed concurrent streams. The programs in
//! `fuzz_targets/` pass the targets to libFuzzer; `cargo xtask fuzz` builds and runs them. The program in `seeds/` creates
//! the initial inputs of `corpus/`.

#![warn(missing_docs)]

pub mod allocation;
pub mod archive;
pub mod client;
pub mod driver;
pub mod log;
pub mod memory;
pub mod script;
pub mod story;
pub mod targets;
