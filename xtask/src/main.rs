//! Chores of the project: `cargo xtask NAME`.

#![forbid(unsafe_code)]

fn main() {}
