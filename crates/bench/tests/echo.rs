// SPDX-License-Identifier: Apache-2.0
//! Short echo benchmarks over each medium and threading mode: every message is echoed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use taran_bench::echo::{EchoConfig, run};
use taran_bench::report::Verdict;

fn config(port: u16) -> EchoConfig {
    // Ports differ between test processes that run at the same time.
    //
    let base = 23_000 + std::process::id() as u16 % 100 * 20;
    EchoConfig {
        channel: format!("aeron:udp?endpoint=127.0.0.1:{}", base + port),
        reply_channel: format!("aeron:udp?endpoint=127.0.0.1:{}", base + port + 1),
        rate: 2_000,
        duration: Duration::from_millis(500),
        warmup: Duration::from_millis(100),
        timeout: Duration::from_secs(30),
        cpus: Vec::new(),
        progress: false,
        ..EchoConfig::default()
    }
}

/// Runs a benchmark and checks that every message is echoed. The verdict may be "rate not held", because the machine
/// may be busy with other tests.
fn assert_all_echoed(config: &EchoConfig) {
    let report = run(config, &Arc::new(AtomicBool::new(false)))
        .expect("both sides run")
        .expect("the client reports");
    let verdict = report.verdict();
    assert!(
        matches!(verdict, Verdict::Held | Verdict::RateNotHeld),
        "{report}"
    );
    assert!(report.sent >= 1_000, "{report}");
    assert_eq!(report.received, report.sent);
    assert_eq!(report.histogram.len(), report.received);
}

#[test]
fn echo_with_invoked_drivers_loses_nothing() {
    assert_all_echoed(&config(0));
}

#[test]
fn echo_with_threaded_drivers_loses_nothing() {
    assert_all_echoed(&EchoConfig {
        threading: "SHARED".to_owned(),
        ..config(2)
    });
}

#[test]
fn echo_of_fragmented_messages_loses_nothing() {
    assert_all_echoed(&EchoConfig {
        length: 10_000,
        rate: 2_000,
        ..config(4)
    });
}

#[test]
fn echo_in_batches_loses_nothing() {
    assert_all_echoed(&EchoConfig {
        batch: 10,
        ..config(6)
    });
}

#[test]
fn echo_with_too_short_message_is_rejected() {
    let stop = Arc::new(AtomicBool::new(false));
    let too_short = EchoConfig {
        length: 8,
        ..config(8)
    };
    let error = run(&too_short, &stop).unwrap_err().to_string();
    assert!(error.contains("the minimum is 16"), "{error}");
}
