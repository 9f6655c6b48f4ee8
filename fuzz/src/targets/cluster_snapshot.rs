// SPDX-License-Identifier: Apache-2.0
//! Snapshots of a consensus module: sessions, timers, messages of services.

use taran_cluster::protocol::ClusterTimeUnit;
use taran_cluster::state::{
    ModuleSnapshot, PendingMessages, SessionLimits, Sessions, SnapshotReader, Timers,
};

use crate::script::Script;

const APP_VERSION: i32 = 1;
const SERVICES: usize = 2;

type State = (Sessions, Timers, Vec<PendingMessages>);

fn read<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Option<State> {
    let mut sessions = Sessions::new(SessionLimits {
        max_sessions: 10,
        timeout: 10_000_000_000,
    });
    let mut timers = Timers::new();
    let mut reader = SnapshotReader::new(ClusterTimeUnit::MILLIS, APP_VERSION);
    for frame in frames {
        match reader.on_frame(frame, &mut sessions, &mut timers) {
            Ok(false) => {}
            Ok(true) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return None;
            }
        }
    }
    let (_, services) = reader.finish(SERVICES).ok()?;
    Some((sessions, timers, services))
}

/// Reads frames as a snapshot. A state that was read is the same when it was written and read again.
pub fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut frames = Vec::new();
    while !script.is_over() {
        frames.push(script.chunk());
    }
    let Some((sessions, timers, services)) = read(frames.iter().copied()) else {
        return;
    };
    let snapshot = ModuleSnapshot {
        log_position: 1024,
        term: 1,
        time_unit: ClusterTimeUnit::MILLIS,
        app_version: APP_VERSION,
    };
    let written = snapshot.module_frames(&sessions, &timers, &services);
    let again = read(written.iter().map(Vec::as_slice)).expect("it was written by a member");
    let rewritten = snapshot.module_frames(&again.0, &again.1, &again.2);
    assert_eq!(written, rewritten);
}
