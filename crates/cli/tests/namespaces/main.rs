//! Drivers on machines of their own: each test makes network namespaces joined by virtual cables, runs `taran driver` in
//! each, and lets datagrams be lost where real ones are lost, in the kernel. What depends on interfaces, on groups that
//! span several machines and on paths that break is seen here and nowhere else. Skipped, loudly, where namespaces cannot
//! be had; with `TARAN_REQUIRE_NAMESPACES=1` that is a failure.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[allow(dead_code, reason = "not all of it is wanted here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod driven;
mod machines;
mod stream;

mod groups;
mod loss;
mod paths;
