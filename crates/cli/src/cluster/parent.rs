// SPDX-License-Identifier: Apache-2.0
//! The tie of a member to the process that has started it.

use std::io;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};

/// Sends SIGTERM to this process when its parent, with this process id, ends in whichever way; at once if it has ended already.
pub(super) fn end_with(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let is_parent = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs() == parent;
    if !getppid().is_some_and(is_parent) {
        kill_process(getpid(), Signal::TERM)?;
    }
    Ok(())
}
