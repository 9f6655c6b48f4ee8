//! What can be wrong, from the chair of whoever has to find out what it is: the driver is not there, the directory is not
//! right, memory is short, a channel cannot be, a port is taken, a peer sends garbage. Each gets a typed error with a text
//! that names the thing, its value, the value that is needed and what to do. Real drivers, real clients, real files.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod absent;
mod attach;
mod channels;
mod datagrams;
mod directories;
mod floods;
mod garbage;
mod mounts;
mod names;
mod offers;
mod ports;
mod sharing;
mod space;
mod texts;
