//! The `taran` command.

#![forbid(unsafe_code)]

fn main() {}
