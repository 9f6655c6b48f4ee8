//! Virtual time, a faulty network and memory from one seed: the simulator that tests Taran.

#![forbid(unsafe_code)]

pub mod network;
