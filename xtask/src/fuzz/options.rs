//! What libFuzzer is told.

use super::Asked;

/// New inputs of a target that nothing more is said about, after its corpus.
const DEFAULT_RUNS: u64 = 20_000;

/// Targets in which something lives through many inputs: how often a place is reached says more about the inputs before.
const STATEFUL: [&str; 6] = [
    "commands",
    "gossip",
    "publisher_log",
    "reader_log",
    "receive_endpoints",
    "send_endpoints",
];

/// Whether something of this target lives through many inputs, which together are a story.
pub(super) fn is_stateful(target: &str) -> bool {
    STATEFUL.contains(&target)
}

/// What no input may need more of: seconds, of a machine that has other things to do, and megabytes of the whole process;
/// and how long inputs get. Texts have limits of some thousand bytes that are worth to be reached, longer stories only take
/// longer.
pub(super) fn limits(target: &str) -> Vec<String> {
    let max_len = if matches!(target, "uri" | "options" | "sbe_schema") {
        5000
    } else {
        512
    };
    vec![
        "-timeout=60".to_owned(),
        "-rss_limit_mb=1024".to_owned(),
        format!("-max_len={max_len}"),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ]
}

/// Where a run begins, what leads it, and when it ends.
pub(super) fn course(target: &str, asked: &Asked) -> Vec<String> {
    let mut course = Vec::new();
    if let Some(seed) = asked.seed {
        // What is compared may be addresses, which are others in each process.
        course.extend([format!("-seed={seed}"), "-use_cmp=0".to_owned()]);
    }
    if asked.fast || is_stateful(target) {
        // Only which places are reached leads to new inputs. How often they are is noise, or takes too long.
        course.extend(["-use_counters=0", "-entropic=0"].map(str::to_owned));
    }
    let runs = match (asked.runs, asked.seconds) {
        (None, None) => Some(DEFAULT_RUNS),
        (runs, _) => runs,
    };
    course.extend(runs.map(|runs| format!("-runs={runs}")));
    course.extend(
        asked
            .seconds
            .map(|seconds| format!("-max_total_time={seconds}")),
    );
    course
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course_of(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let asked = super::super::read(&arguments).expect("the arguments are fine");
        course(&asked.targets[0], &asked)
    }

    #[test]
    fn what_was_asked_for_is_told() {
        assert_eq!(course_of(&["uri"]), ["-runs=20000"]);
        assert_eq!(
            course_of(&["uri", "--seed", "7", "--runs", "1000"]),
            ["-seed=7", "-use_cmp=0", "-runs=1000"]
        );
        assert_eq!(course_of(&["uri", "--seconds", "5"]), ["-max_total_time=5"]);
        let fast = ["-use_counters=0", "-entropic=0", "-runs=1"];
        assert_eq!(course_of(&["uri", "--fast", "--runs", "1"]), fast);
        assert_eq!(course_of(&["gossip", "--runs", "1"]), fast);
    }
}
