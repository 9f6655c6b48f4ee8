// SPDX-License-Identifier: Apache-2.0
//! Detection of an attached debugger, under which timeouts are meaningless.

/// Returns true if a debugger (or another tracer) is attached to this process. False on systems that do not report it.
#[must_use]
pub fn is_attached() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| tracer(&status) != 0)
}

/// Returns the process id of the tracer; 0 without one.
fn tracer(status: &str) -> u32 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .and_then(|pid| pid.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracer_reads_the_process_id() {
        assert_eq!(tracer("Name:\ttaran\nTracerPid:\t4711\nUid:\t0\n"), 4711);
        assert_eq!(tracer("Name:\ttaran\nTracerPid:\t0\n"), 0);
        assert_eq!(tracer(""), 0);
    }
}
