//! Finding a driver (`spec/01 §1.6`).
//!
//! Contract: [`Connecting::poll`] is called with the present time until it gives a client or an error; in between it
//! says how long to wait. It does no waiting itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::AgentRunner;
use taran_core::broadcast::Receiver;
use taran_core::clock::{Now, SystemClock, saturating_nanos};
use taran_core::counters::CountersReader;
use taran_core::idle::{Backoff, BackoffLimits};
use taran_core::memory::MemoryError;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::Cnc;

use crate::client::Client;
use crate::conductor::{Conductor, ConductorAgent};
use crate::context::Context;
use crate::error::{ClientError, ConnectError, Lost, Version};
use crate::handlers::Handlers;
use crate::link::{Attached, Link, Settings};

/// Version of `cnc.dat` that this client speaks: 0.2.0.
const CNC_VERSION: Version = Version(512);
/// Bytes of the header of `cnc.dat`.
const HEADER_LENGTH: usize = 128;
/// Heartbeat of a driver that has shut down in an orderly way.
const SHUT_DOWN: i64 = -1;

const WAIT_FOR_FILE: Duration = Duration::from_millis(16);
const WAIT_FOR_DRIVER_START: Duration = Duration::from_millis(1);
const WAIT_FOR_NEW_DRIVER: Duration = Duration::from_millis(100);
