//! The echo benchmark, small: everything comes back, in every threading mode and over each medium.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use taran_bench::echo::{EchoConfig, run};
use taran_bench::report::Verdict;

fn config(port: u16) -> EchoConfig {
    // Ports differ between processes that run at the same time.
    let base = 23_000 + std::process::id() as u16 % 100 * 20;
    EchoConfig {
        channel: format!("aeron:udp?endpoint=127.0.0.1:{}", base + port),
        reply_channel: format!("aeron:udp?endpoint=127.0.0.1:{}", base + port + 1),
        rate: 2_000,
        duration: Duration::from_millis(500),
        warmup: Duration::from_millis(100),
        patience: Duration::from_secs(30),
        cpus: Vec::new(),
        progress: false,
        ..EchoConfig::default()
    }
}

/// The verdict may be that the rate was not held: the machine may be busy with other tests.
fn everything_comes_back(config: &EchoConfig) {
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
fn with_invoked_drivers() {
    everything_comes_back(&config(0));
}

#[test]
fn with_drivers_on_threads_of_their_own() {
    everything_comes_back(&EchoConfig {
        threading: "SHARED".to_owned(),
        ..config(2)
    });
}

#[test]
fn with_messages_of_several_fragments() {
    everything_comes_back(&EchoConfig {
        length: 10_000,
        rate: 2_000,
        ..config(4)
    });
}

#[test]
fn in_batches() {
    everything_comes_back(&EchoConfig {
        batch: 10,
        ..config(6)
    });
}

#[test]
fn what_cannot_be_run_is_said() {
    let stop = Arc::new(AtomicBool::new(false));
    let too_short = EchoConfig {
        length: 8,
        ..config(8)
    };
    let error = run(&too_short, &stop).unwrap_err().to_string();
    assert!(error.contains("at least 16"), "{error}");
}
