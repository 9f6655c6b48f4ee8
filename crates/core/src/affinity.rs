// SPDX-License-Identifier: Apache-2.0
//! CPU affinity and timer slack of threads.

use std::io;
use std::num::NonZeroU64;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use thiserror::Error;

/// A thread could not be pinned.
#[derive(Error)]
#[non_exhaustive]
pub enum AffinityError {
    /// The process may not use this CPU, or the machine has no such CPU.
    #[error(
        "cannot run on CPU {cpu}: not a CPU of this process, which runs on {allowed:?} at present (see \
         taskset, cgroup cpuset)"
    )]
    NotAllowed {
        /// The requested CPU, counted from 0.
        cpu: usize,
        /// The CPUs the thread runs on at present.
        allowed: Vec<usize>,
    },
    /// The operating system rejected the request.
    #[error("cannot run on CPU {cpu}: {source}")]
    Refused {
        /// The requested CPU, counted from 0.
        cpu: usize,
        /// The system's error.
        source: io::Error,
    },
}

crate::debug_is_display!(AffinityError);

/// Binds the calling thread to one CPU, counted from 0.
///
/// # Errors
/// [`AffinityError`] names the CPU and, if known, the permitted ones; the affinity of the thread is then unchanged.
pub fn pin_current_thread(cpu: usize) -> Result<(), AffinityError> {
    let allowed = allowed_cpus();
    if cpu >= CpuSet::MAX_CPU {
        return Err(AffinityError::NotAllowed { cpu, allowed });
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    // The thread may be permitted more CPUs than it runs on at present, so the system decides.
    sched_setaffinity(None, &set).map_err(|error| match error {
        Errno::INVAL => AffinityError::NotAllowed { cpu, allowed },
        error => AffinityError::Refused {
            cpu,
            source: error.into(),
        },
    })
}

/// Returns the CPUs that the calling thread may run on, in ascending order; empty if the system does not report them.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Sets the timer slack of the calling thread to the minimum: with the default slack of 50 us a sleep of 1 us takes
/// about 80 us, with this one about 20 us. Best effort.
pub fn set_min_timer_slack() {
    // A failure leaves the default slack, which is coarser but correct.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    // Each test pins its own thread, never a thread of the test harness.

    #[test]
    fn pinned_thread_may_use_one_cpu() {
        let cpu = allowed_cpus()[0];
        let after = thread::spawn(move || pin_current_thread(cpu).map(|()| allowed_cpus()))
            .join()
            .unwrap();
        assert_eq!(after.unwrap(), [cpu]);
    }

    #[test]
    fn pinned_thread_can_be_pinned_elsewhere() {
        let cpus = allowed_cpus();
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        let moved = thread::spawn(move || {
            pin_current_thread(first)?;
            pin_current_thread(last).map(|()| allowed_cpus())
        });
        assert_eq!(moved.join().unwrap().unwrap(), [last]);
    }

    #[test]
    fn unknown_cpu_is_rejected_with_the_permitted_ones() {
        for cpu in [usize::MAX, 1023] {
            let error = thread::spawn(move || pin_current_thread(cpu))
                .join()
                .unwrap()
                .unwrap_err();
            let AffinityError::NotAllowed {
                cpu: named,
                allowed,
            } = error
            else {
                panic!("{error}")
            };
            assert_eq!(named, cpu);
            assert!(!allowed.is_empty());
        }
    }

    #[test]
    fn set_min_timer_slack_sets_one_nanosecond() {
        let slack = thread::spawn(|| {
            set_min_timer_slack();
            rustix::thread::current_timer_slack().unwrap()
        });
        assert_eq!(slack.join().unwrap(), 1);
    }
}
