//! Finding and reading `cnc.dat`.

use std::path::PathBuf;
use std::time::Duration;

use taran_core::memory::MemoryError;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::{CNC_FILE_NAME, CNC_HEADER_LENGTH, Cnc, CncError};

use super::{WAIT_FOR_FILE, WAIT_FOR_START};
use crate::context::Context;
use crate::error::ConnectError;

/// A sound `cnc.dat`, of a driver that may be gone.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) cnc: Cnc,
    pub(super) producer: Producer,
}

/// Why there is none.
pub(super) struct Missing {
    pub(super) why: ConnectError,
    /// When to look again, if a driver that is just starting looks like that.
    pub(super) again_in: Option<Duration>,
}

pub(super) fn find(context: &Context) -> Result<Found, Missing> {
    let path = context.directory().join(CNC_FILE_NAME);
    let region = context.storage.open(&path).map_err(|error| Missing {
        why: not_opened(context, error, path.clone()),
        again_in: Some(WAIT_FOR_FILE),
    })?;
    let cnc = Cnc::open(&region).map_err(|error| Missing {
        again_in: error.is_not_ready().then_some(WAIT_FOR_START),
        why: not_sound(context, error, path.clone()),
    })?;
    let producer = Producer::open(&cnc.to_driver).map_err(|error| Missing {
        why: ConnectError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        },
        again_in: None,
    })?;
    Ok(Found {
        path,
        cnc,
        producer,
    })
}

fn not_opened(context: &Context, error: MemoryError, path: PathBuf) -> ConnectError {
    match error {
        MemoryError::NotFound { .. } => ConnectError::NoDriver {
            directory: context.directory(),
            waited: context.timeout(),
        },
        MemoryError::Empty { .. } => ConnectError::TooShort {
            path,
            length: 0,
            needed: CNC_HEADER_LENGTH,
        },
        error => ConnectError::NotReadable {
            path,
            reason: error.to_string(),
        },
    }
}

fn not_sound(context: &Context, error: CncError, path: PathBuf) -> ConnectError {
    match error {
        CncError::TooShort { length, needed } => ConnectError::TooShort {
            path,
            length,
            needed,
        },
        CncError::NotReady => ConnectError::NotReady {
            path,
            waited: context.timeout(),
        },
        CncError::Version { found, expected } => ConnectError::Version {
            path,
            found,
            expected,
        },
        error => ConnectError::Damaged {
            path,
            reason: error.to_string(),
        },
    }
}
