// SPDX-License-Identifier: Apache-2.0
//! Options of libFuzzer.

use super::FuzzArguments;

/// Default number of new inputs of a target, after its corpus.
const DEFAULT_RUNS: u64 = 20_000;

/// Targets with state that outlives an input. For these, the number of times that code is reached depends on earlier inputs.
const STATEFUL: [&str; 6] = [
    "commands",
    "gossip",
    "publisher_log",
    "reader_log",
    "receive_endpoints",
    "send_endpoints",
];

/// Returns true if the target keeps state between inputs.
pub(super) fn is_stateful(target: &str) -> bool {
    STATEFUL.contains(&target)
}

/// Returns the limits of each input: seconds (generous, because the machine may be busy), megabytes of the process, and bytes of
/// the input. The texts have limits of some thousand bytes that the inputs must be able to reach; longer scripts only take
/// more time.
pub(super) fn limits(target: &str) -> Vec<String> {
    let max_len = if matches!(
        target,
        "uri" | "options" | "sbe_schema" | "fix_dictionary" | "fix_session"
    ) {
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

/// Returns the options for seed, guidance and end of a run.
pub(super) fn run_options(target: &str, arguments: &FuzzArguments) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(seed) = arguments.seed {
        // Compared values may be addresses, which differ between processes.
        options.extend([format!("-seed={seed}"), "-use_cmp=0".to_owned()]);
    }
    if arguments.fast || is_stateful(target) {
        // Guided by reached code only: counters are noise in stateful targets, and cost time.
        options.extend(["-use_counters=0", "-entropic=0"].map(str::to_owned));
    }
    let runs = match (arguments.runs, arguments.seconds) {
        (None, None) => Some(DEFAULT_RUNS),
        (runs, _) => runs,
    };
    options.extend(runs.map(|runs| format!("-runs={runs}")));
    options.extend(
        arguments
            .seconds
            .map(|seconds| format!("-max_total_time={seconds}")),
    );
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let arguments = super::super::read(&arguments).expect("the arguments are fine");
        run_options(&arguments.targets[0], &arguments)
    }

    #[test]
    fn run_options_follow_the_arguments() {
        assert_eq!(options_of(&["uri"]), ["-runs=20000"]);
        assert_eq!(
            options_of(&["uri", "--seed", "7", "--runs", "1000"]),
            ["-seed=7", "-use_cmp=0", "-runs=1000"]
        );
        assert_eq!(
            options_of(&["uri", "--seconds", "5"]),
            ["-max_total_time=5"]
        );
        let fast = ["-use_counters=0", "-entropic=0", "-runs=1"];
        assert_eq!(options_of(&["uri", "--fast", "--runs", "1"]), fast);
        assert_eq!(options_of(&["gossip", "--runs", "1"]), fast);
    }
}
