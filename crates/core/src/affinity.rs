//! CPU affinity and timer slack of threads.

use std::io;

use thiserror::Error;

/// A thread could not be pinned.
#[derive(Debug, Error)]
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
    /// Not supported on this operating system.
    #[error("cannot run on CPU {cpu}: pinning threads is supported on Linux only")]
    Unsupported {
        /// The requested CPU, counted from 0.
        cpu: usize,
    },
}

/// Binds the calling thread to one CPU, counted from 0.
///
/// # Errors
/// [`AffinityError`] names the CPU and, if known, the permitted ones; the affinity of the thread is then unchanged.
pub fn pin_current_thread(cpu: usize) -> Result<(), AffinityError> {
    platform::pin_current_thread(cpu)
}

/// Returns the CPUs that the calling thread may run on, in ascending order; empty if the system does not report them.
pub fn allowed_cpus() -> Vec<usize> {
    platform::allowed_cpus()
}

/// Sets the timer slack of the calling thread to the minimum: with the default slack of 50 us a sleep of 1 us takes
/// about 80 us on Linux, with this one about 20 us. Best effort: does nothing on other systems.
pub fn set_min_timer_slack() {
    platform::set_min_timer_slack();
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::mem;

    use super::AffinityError;

    /// Bits in a `cpu_set_t`.
    const MAX_CPUS: usize = libc::CPU_SETSIZE as usize;

    pub(super) fn pin_current_thread(cpu: usize) -> Result<(), AffinityError> {
        let allowed = allowed_cpus();
        if cpu >= MAX_CPUS {
            return Err(AffinityError::NotAllowed { cpu, allowed });
        }
        let mut set = empty_set();
        // SAFETY: `cpu` is below CPU_SETSIZE (checked above), so the bit lies inside the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: `set` is valid for reads of the given size; pid 0 is the calling thread.
        let result = unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) };
        if result == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        // The thread may be permitted more CPUs than it runs on at present, so the system decides.
        if source.raw_os_error() == Some(libc::EINVAL) {
            Err(AffinityError::NotAllowed { cpu, allowed })
        } else {
            Err(AffinityError::Refused { cpu, source })
        }
    }

    pub(super) fn allowed_cpus() -> Vec<usize> {
        let mut set = empty_set();
        // SAFETY: `set` is valid for writes of the given size; pid 0 is the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) };
        if result != 0 {
            return Vec::new();
        }
        // SAFETY: each `cpu` is below CPU_SETSIZE, so the bit lies inside the set.
        (0..MAX_CPUS)
            .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
            .collect()
    }

    pub(super) fn set_min_timer_slack() {
        const ONE_NANOSECOND: libc::c_ulong = 1;
        // SAFETY: this option takes one integer and touches no memory. A failure leaves the default
        // slack, which is coarser but correct.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ONE_NANOSECOND) };
    }

    fn empty_set() -> libc::cpu_set_t {
        // SAFETY: `cpu_set_t` is an array of integers, for which all zeros is the empty set.
        unsafe { mem::zeroed() }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::AffinityError;

    pub(super) fn pin_current_thread(cpu: usize) -> Result<(), AffinityError> {
        Err(AffinityError::Unsupported { cpu })
    }

    pub(super) fn allowed_cpus() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn set_min_timer_slack() {}
}

#[cfg(all(test, target_os = "linux"))]
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
            // SAFETY: this option takes no argument and touches no memory.
            unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
        });
        assert_eq!(slack.join().unwrap(), 1);
    }
}
