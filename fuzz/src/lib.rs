//! Fuzz targets for every byte that comes from outside: the network, other processes' memory, files and texts.
//!
//! A target is a function that takes any bytes. It asserts what has to hold whatever they are: bounded work and memory,
//! results that are in range, texts that read as they were printed, streams beside it that stay intact. The programs in
//! `fuzz_targets/` hand them to libFuzzer; `cargo xtask fuzz` builds and runs those. The first inputs of `corpus/` were made
//! by the program in `seeds/`.

#![warn(missing_docs)]

pub mod allocation;
pub mod client;
pub mod driver;
pub mod log;
pub mod memory;
pub mod script;
pub mod story;
pub mod targets;
