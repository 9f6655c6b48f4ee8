//! The media driver: conductor, sender and receiver.

#![forbid(unsafe_code)]

pub mod boundary;
mod faults;
mod park;
pub mod receiver;
#[cfg(test)]
mod road_tests;
pub mod sender;
#[cfg(test)]
mod testing;
