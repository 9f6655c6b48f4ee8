//! The driver as its clients see it: whole, in memory, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod clients;
mod commands;
mod congestion;
mod counters;
mod cycles;
mod destinations;
mod flow_control;
mod foresight;
mod groups;
mod heap;
mod hostile;
mod images;
mod ipc;
mod names;
mod ports;
mod responses;
mod sending_groups;
mod sessions;
mod shortages;
mod sources;
mod spies;
mod storage;
mod strangers;
mod timestamps;
mod told;
mod uri_table;
mod wires;
