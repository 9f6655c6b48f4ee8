// SPDX-License-Identifier: Apache-2.0
//! Agents of an embedding program beside those of the driver, in each threading mode, and the driver's diagnostics
//! (docs/spec/uri-and-configuration.md §2.10).

#![cfg(not(loom))] // needs the modules that start drivers
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::agent::AgentWaker;
use taran_core::ring::many_to_one::Producer;
use taran_driver::idle::Yield;
use taran_driver::{
    AddAgentError, Agent, AgentEnd, AgentEvent, AgentPlacement, AgentThread, Diagnostic,
    DriverContext, DriverWarning, FileStorage, MediaDriver, Now, Storage, Termination,
    ThreadingMode,
};
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::command::Command as DriverCommand;

const MODES: [ThreadingMode; 4] = [
    ThreadingMode::Dedicated,
    ThreadingMode::SharedNetwork,
    ThreadingMode::Shared,
    ThreadingMode::Invoker,
];

/// Directory of one test, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = Path::new("/dev/shm");
        let parent = if parent.is_dir() {
            parent.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = parent.join(format!("taran-embedding-{}-{nth}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn context(&self, mode: ThreadingMode) -> DriverContext {
        DriverContext::new()
            .aeron_dir(self.0.join("aeron"))
            .threading_mode(mode)
            .on_diagnostic(|_| ())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls to agents, with the thread of each, in order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<(String, String)>>>);

impl Journal {
    fn record(&self, entry: String) {
        let thread = thread::current();
        let thread = thread.name().unwrap_or("").to_owned();
        self.0.lock().unwrap().push((entry, thread));
    }

    fn entries(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().clone()
    }

    fn texts(&self) -> Vec<String> {
        let entries = self.entries();
        entries.into_iter().map(|(entry, _)| entry).collect()
    }

    fn contains(&self, text: &str) -> bool {
        self.entries().iter().any(|(entry, _)| entry == text)
    }
}

/// Result of the second duty cycle of a probe.
#[derive(Clone, Copy)]
enum Fate {
    Runs,
    Finishes,
    Fails,
    Panics,
}

#[derive(Debug, thiserror::Error)]
#[error("no space left for recordings")]
struct DiskFull;

/// An agent that records its calls; of its duty cycles only the first one.
struct Probe {
    name: &'static str,
    journal: Journal,
    fate: Fate,
    cycles: usize,
    directory: Option<PathBuf>,
}

impl Probe {
    fn new(name: &'static str, journal: &Journal, fate: Fate) -> Self {
        Self {
            name,
            journal: journal.clone(),
            fate,
            cycles: 0,
            directory: None,
        }
    }

    /// Records at its close whether the driver in `directory` is still active.
    fn watching(self, directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            ..self
        }
    }
}

impl Agent for Probe {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        self.cycles += 1;
        if self.cycles == 1 {
            self.journal.record(format!("{} works", self.name));
            return Ok(1);
        }
        match self.fate {
            Fate::Runs => Ok(0),
            Fate::Finishes => Err(AgentEnd::Finished),
            Fate::Fails => Err(DiskFull.into()),
            Fate::Panics => panic!("requested panic"),
        }
    }

    fn role_name(&self) -> &str {
        self.name
    }

    fn on_start(&mut self) {
        self.journal.record(format!("{} starts", self.name));
    }

    fn on_close(&mut self) {
        let state = match &self.directory {
            Some(directory) if heartbeat_ms(directory) == -1 => " after the driver",
            Some(_) => " before the driver",
            None => "",
        };
        self.journal.record(format!("{} closes{state}", self.name));
    }
}

fn heartbeat_ms(directory: &Path) -> i64 {
    ring(directory).consumer_heartbeat_ms()
}

/// Opens the ring to the driver.
fn ring(directory: &Path) -> Producer {
    let cnc = Cnc::open(&FileStorage.open(&directory.join(CNC_FILE_NAME)).unwrap()).unwrap();
    Producer::open(&cnc.to_driver).unwrap()
}

/// Sends a command to the driver.
fn send(directory: &Path, command: &DriverCommand<'_>) {
    let mut bytes = Vec::new();
    let type_id = command.encode(&mut bytes);
    ring(directory).write(type_id, &bytes).unwrap();
}

/// Invokes the driver, if it is invoked, until `done`.
fn run_until(driver: &mut MediaDriver, mut done: impl FnMut(&MediaDriver) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done(driver) {
        assert!(Instant::now() < deadline, "it does not come true");
        driver.invoke();
        thread::yield_now();
    }
}

fn own_thread(name: &str) -> AgentPlacement {
    AgentPlacement::OwnThread(AgentThread::new(Yield).name(name))
}

#[test]
fn added_agent_runs_on_the_promised_thread_in_each_mode() {
    for mode in MODES {
        let scratch = Scratch::new();
        let (journal, hooks) = (Journal::default(), Journal::default());
        let seen = hooks.clone();
        let context = scratch
            .context(mode)
            .on_agent_start(move |role| seen.record(role.to_owned()));
        let mut driver = MediaDriver::launch(context).unwrap();
        for (name, placement) in [
            ("hosted", AgentPlacement::DriverThread),
            ("separate", own_thread("own-thread")),
        ] {
            let probe = Probe::new(name, &journal, Fate::Runs);
            driver.add_agent(probe, placement).unwrap();
        }
        run_until(&mut driver, |_| {
            journal.contains("hosted works") && journal.contains("separate works")
        });
        driver.close().unwrap();

        let caller = thread::current().name().unwrap_or("").to_owned();
        let driver_thread = match mode {
            ThreadingMode::Dedicated | ThreadingMode::SharedNetwork => "conductor",
            ThreadingMode::Shared => "[conductor, sender, receiver]",
            ThreadingMode::Invoker => &caller,
        };
        for (name, thread) in [("hosted", driver_thread), ("separate", "own-thread")] {
            let mut calls = journal.entries();
            calls.retain(|(call, _)| call.starts_with(name));
            let expected = ["starts", "works", "closes"]
                .map(|call| (format!("{name} {call}"), thread.to_owned()));
            assert_eq!(calls, expected, "{mode:?}");
        }
        let roles: &[&str] = match mode {
            ThreadingMode::Dedicated => &["conductor", "receiver", "sender", "separate"],
            ThreadingMode::SharedNetwork => &["[sender, receiver]", "conductor", "separate"],
            ThreadingMode::Shared => &["[conductor, sender, receiver]", "separate"],
            ThreadingMode::Invoker => &["[conductor, [sender, receiver]]", "separate"],
        };
        let mut hooked = hooks.texts();
        hooked.sort();
        assert_eq!(hooked, roles, "{mode:?}");
    }
}

#[test]
fn added_agents_close_in_reverse_order_before_the_driver() {
    for mode in MODES {
        let scratch = Scratch::new();
        let journal = Journal::default();
        let mut driver = MediaDriver::launch(scratch.context(mode)).unwrap();
        let directory = driver.aeron_dir().to_owned();
        for (name, placement) in [
            ("first", AgentPlacement::DriverThread),
            ("second", own_thread("second")),
            ("third", AgentPlacement::DriverThread),
            ("fourth", own_thread("fourth")),
        ] {
            let probe = Probe::new(name, &journal, Fate::Runs).watching(&directory);
            driver.add_agent(probe, placement).unwrap();
            run_until(&mut driver, |_| journal.contains(&format!("{name} works")));
        }
        driver.close().unwrap();
        assert_eq!(heartbeat_ms(&directory), -1);
        let mut closes = journal.texts();
        closes.retain(|entry| entry.contains("closes"));
        let expected = ["fourth", "third", "second", "first"]
            .map(|name| format!("{name} closes before the driver"));
        assert_eq!(closes, expected, "{mode:?}");
    }
}

#[test]
fn close_agent_ends_one_agent_and_leaves_the_others() {
    for mode in MODES {
        let scratch = Scratch::new();
        let journal = Journal::default();
        let mut driver = MediaDriver::launch(scratch.context(mode)).unwrap();
        let add = |driver: &mut MediaDriver, name, placement| {
            let probe = Probe::new(name, &journal, Fate::Runs);
            driver.add_agent(probe, placement).unwrap()
        };
        let hosted = add(&mut driver, "hosted", AgentPlacement::DriverThread);
        let separate = add(&mut driver, "separate", own_thread("separate"));
        add(&mut driver, "other", AgentPlacement::DriverThread);
        for id in [hosted, separate, hosted] {
            driver.close_agent(id);
        }
        assert!(journal.contains("hosted closes") && journal.contains("separate closes"));
        run_until(&mut driver, |_| journal.contains("other works"));
        assert!(!journal.contains("other closes"), "{mode:?}");
        driver.close().unwrap();
        let closes = journal.texts();
        let count = |text| closes.iter().filter(|entry| *entry == text).count();
        for name in ["hosted closes", "separate closes", "other closes"] {
            assert_eq!(count(name), 1, "{mode:?}");
        }
    }
}

/// An agent whose close needs the driver.
struct Departing {
    directory: PathBuf,
    journal: Journal,
}

impl Agent for Departing {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        Ok(0)
    }

    fn role_name(&self) -> &str {
        "departing"
    }

    fn on_close(&mut self) {
        // Two heartbeats, because the first one may have been due already.
        let deadline = Instant::now() + Duration::from_secs(60);
        for _ in 0..2 {
            let last = heartbeat_ms(&self.directory);
            while heartbeat_ms(&self.directory) == last {
                if Instant::now() > deadline {
                    return;
                }
                thread::yield_now();
            }
        }
        self.journal.record("departed".to_owned());
    }
}

#[test]
fn separate_agent_closes_while_the_driver_runs() {
    for mode in MODES {
        for by_driver_close in [false, true] {
            let scratch = Scratch::new();
            let journal = Journal::default();
            let context = scratch
                .context(mode)
                .timer_interval(Duration::from_millis(2));
            let mut driver = MediaDriver::launch(context).unwrap();
            let agent = Departing {
                directory: driver.aeron_dir().to_owned(),
                journal: journal.clone(),
            };
            let agent = driver.add_agent(agent, own_thread("departing")).unwrap();
            if !by_driver_close {
                driver.close_agent(agent);
                assert_eq!(journal.texts(), ["departed"], "{mode:?}");
            }
            driver.close().unwrap();
            assert_eq!(journal.texts(), ["departed"], "{mode:?}");
        }
    }
}

#[test]
fn panic_of_driver_agent_ends_the_driver_alike_in_each_mode() {
    for mode in MODES {
        for during in ["on_start", "do_work"] {
            let scratch = Scratch::new();
            let events = Arc::new(Mutex::new(Vec::<AgentEvent>::new()));
            let sink = Arc::clone(&events);
            let context = scratch
                .context(mode)
                .on_agent_event(move |event| sink.lock().unwrap().push(event.clone()))
                .on_agent_start(move |role| {
                    // Only on the thread of the conductor.
                    assert!(during != "on_start" || !role.contains("conductor"), "asked");
                })
                .termination_validator(|_, _| panic!("asked"));
            let mut driver = MediaDriver::launch(context).unwrap();
            let directory = driver.aeron_dir().to_owned();
            let journal = Journal::default();
            let hosted = Probe::new("hosted", &journal, Fate::Runs);
            // It is refused if the thread has ended already.
            let hosted = driver.add_agent(hosted, AgentPlacement::DriverThread).ok();
            assert!(hosted.is_some() || during == "on_start");
            if during == "do_work" {
                run_until(&mut driver, |_| journal.contains("hosted works"));
                let command = DriverCommand::TerminateDriver {
                    client_id: 1,
                    correlation_id: 2,
                    token: b"please",
                };
                send(&directory, &command);
            }
            run_until(&mut driver, |driver| {
                let is_running = hosted.is_some_and(|id| driver.is_agent_running(id));
                driver.termination().is_some() && !is_running
            });
            let Some(Termination::Failed(reason)) = driver.termination() else {
                panic!("{:?}", driver.termination());
            };
            let reported: Vec<_> = events.lock().unwrap().clone();
            assert_eq!(reported.len(), 1, "{reported:?}");
            match &reported[0] {
                AgentEvent::Panicked {
                    agent,
                    during: reported,
                    message,
                } => {
                    assert!(agent.contains("conductor"), "{agent}");
                    assert_eq!((*reported, message.as_str()), (during, "asked"));
                }
                event => panic!("{event}"),
            }
            assert_eq!(reason, reported[0].to_string());
            assert_eq!(driver.errors().count(), 1);
            assert_eq!(journal.contains("hosted closes"), during == "do_work");
            let late = Probe::new("late", &journal, Fate::Runs);
            let late = driver.add_agent(late, AgentPlacement::DriverThread);
            assert!(matches!(late, Err(AddAgentError::DriverEnded(_))));
            assert_eq!(driver.invoke(), 0);
            driver.close().unwrap();
            assert_eq!(heartbeat_ms(&directory), -1, "{mode:?}");
        }
    }
}

/// Counts its duty cycles, and shares its waker.
struct Waiting {
    waker: AgentWaker,
    cycles: Arc<AtomicUsize>,
}

impl Agent for Waiting {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        self.cycles.fetch_add(1, Ordering::Release);
        Ok(0)
    }

    fn role_name(&self) -> &str {
        "waiting"
    }

    fn on_start(&mut self) {
        self.waker.register();
    }
}

/// Much longer than a test takes.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn waker_of_added_agent_ends_the_wait_for_sockets() {
    for mode in [ThreadingMode::Shared, ThreadingMode::Invoker] {
        let scratch = Scratch::new();
        let context = scratch
            .context(mode)
            .option("aeron.shared.idle.strategy", "sleep-ns")
            .option("aeron.shared.idle.strategy.init.args", "600s");
        let mut driver = MediaDriver::launch(context).unwrap();
        let (waker, cycles) = (AgentWaker::default(), Arc::<AtomicUsize>::default());
        let agent = Waiting {
            waker: waker.clone(),
            cycles: Arc::clone(&cycles),
        };
        driver
            .add_agent(agent, AgentPlacement::DriverThread)
            .unwrap();
        // With a subscription, the receiver has a socket to wait for.
        let subscription = DriverCommand::AddSubscription {
            client_id: 1,
            correlation_id: 2,
            stream_id: 7,
            channel: "aeron:udp?endpoint=127.0.0.1:0",
        };
        let directory = driver.aeron_dir().to_owned();
        send(&directory, &subscription);
        let commands = ring(&directory);
        run_until(&mut driver, |_| {
            waker.wake();
            commands.size() == 0
        });
        let start = Instant::now();
        for _ in 0..5 {
            if mode == ThreadingMode::Invoker {
                // These also end the waits that end early for another reason: the conductor was skipped, or has woken
                // the receiver.
                for _ in 0..10 {
                    driver.invoke();
                    driver.park(Duration::from_millis(1));
                }
                waker.wake();
                driver.park(LONG);
            } else {
                // The cycle in progress, and the one after the wait that the waker ends.
                let seen = cycles.load(Ordering::Acquire);
                waker.wake();
                run_until(&mut driver, |_| cycles.load(Ordering::Acquire) > seen);
            }
        }
        driver.close().unwrap();
        assert!(start.elapsed() < LONG, "{mode:?}");
    }
}

#[test]
fn end_of_added_agent_is_reported_and_leaves_the_driver() {
    let placements: [fn() -> AgentPlacement; 2] =
        [|| AgentPlacement::DriverThread, || own_thread("own")];
    for mode in MODES {
        for placement in placements {
            for fate in [Fate::Finishes, Fate::Fails, Fate::Panics] {
                let scratch = Scratch::new();
                let journal = Journal::default();
                let events = Arc::new(Mutex::new(Vec::<AgentEvent>::new()));
                let sink = Arc::clone(&events);
                let context = scratch
                    .context(mode)
                    .on_agent_event(move |event| sink.lock().unwrap().push(event.clone()));
                let mut driver = MediaDriver::launch(context).unwrap();
                let probe = Probe::new("probe", &journal, fate);
                driver.add_agent(probe, placement()).unwrap();
                run_until(&mut driver, |_| journal.contains("probe closes"));

                let reported = events.lock().unwrap().clone();
                assert_eq!(reported.len(), 1, "{reported:?}");
                let is_failure = !matches!(fate, Fate::Finishes);
                assert_eq!(reported[0].is_failure(), is_failure);
                assert_eq!(reported[0].agent(), "probe");
                match (&reported[0], fate) {
                    (AgentEvent::Ended { end, .. }, Fate::Fails) => {
                        assert!(end.error::<DiskFull>().is_some());
                    }
                    (AgentEvent::Ended { end, .. }, Fate::Finishes) => {
                        assert!(matches!(end, AgentEnd::Finished));
                    }
                    (AgentEvent::Panicked { during, .. }, Fate::Panics) => {
                        assert_eq!(*during, "do_work");
                    }
                    (event, _) => panic!("{event}"),
                }
                match driver.termination() {
                    Some(Termination::AgentFailed(event)) if is_failure => {
                        assert_eq!(event.to_string(), reported[0].to_string());
                    }
                    None if !is_failure => {}
                    other => panic!("{other:?}"),
                }
                let mut logged = Vec::new();
                driver
                    .errors()
                    .for_each(0, |error| logged.push(error.text.clone()));
                assert_eq!(logged.len(), usize::from(is_failure), "{logged:?}");
                assert_eq!(driver.errors().count(), i64::from(is_failure));
                assert!(logged.iter().all(|text| text.contains("`probe`")));

                // The driver still runs agents.
                let next = Probe::new("next", &journal, Fate::Runs);
                driver
                    .add_agent(next, AgentPlacement::DriverThread)
                    .unwrap();
                run_until(&mut driver, |_| journal.contains("next works"));
            }
        }
    }
}

#[test]
fn agent_ends_with_an_error_of_any_kind() {
    struct Failing(bool);
    fn open_recording() -> anyhow::Result<usize> {
        use anyhow::Context;
        Err(DiskFull).context("recording 7")
    }
    impl Agent for Failing {
        fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
            if self.0 {
                return Err("the lease has expired".into());
            }
            Ok(open_recording()?)
        }

        fn role_name(&self) -> &str {
            "failing"
        }
    }
    let scratch = Scratch::new();
    let mut driver = MediaDriver::launch(scratch.context(ThreadingMode::Invoker)).unwrap();
    for (agent, text) in [
        (Failing(false), "recording 7: no space left for recordings"),
        (Failing(true), "the lease has expired"),
    ] {
        let id = driver
            .add_agent(agent, AgentPlacement::DriverThread)
            .unwrap();
        driver.invoke();
        assert!(!driver.is_agent_running(id));
        let mut logged = Vec::new();
        driver
            .errors()
            .for_each(0, |error| logged.push(error.text.clone()));
        let expected = format!("agent `failing` has ended: {text}");
        assert!(logged.last().unwrap().contains(&expected), "{logged:?}");
    }
}

#[test]
fn agent_is_refused_after_the_end_of_the_driver_thread() {
    let scratch = Scratch::new();
    let context = scratch
        .context(ThreadingMode::Shared)
        .on_agent_start(|_| panic!("requested panic"));
    let mut driver = MediaDriver::launch(context).unwrap();
    run_until(&mut driver, |driver| driver.termination().is_some());
    let journal = Journal::default();
    // The thread closes its agents after it has reported the panic.
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = loop {
        let probe = Probe::new("late", &journal, Fate::Runs);
        match driver.add_agent(probe, AgentPlacement::DriverThread) {
            Err(error) => break error,
            Ok(_) => assert!(Instant::now() < deadline),
        }
        thread::yield_now();
    };
    assert!(matches!(error, AddAgentError::DriverEnded(_)), "{error}");
    driver.close().unwrap();
    assert!(!journal.contains("late works"));
}

/// Set for the child process of the next test: the directory of its driver.
const CHILD_DIRECTORY: &str = "TARAN_EMBEDDING_CHILD";

/// Lines between which the output of the child process is that of its driver: loaders, test runners and sanitizers print too.
const BEGIN: &str = "--- output of the driver begins";
const END: &str = "--- output of the driver ends";

/// Returns what a stream of the child process contains between the two lines.
fn driver_output(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let (_, rest) = text.split_once(&format!("{BEGIN}\n")).unwrap();
    let (output, _) = rest.split_once(&format!("{END}\n")).unwrap();
    output.to_owned()
}

/// Launches a driver that has something to say: its directory exists, its socket buffers exceed the limits of the system,
/// its configuration is to be printed, and its error log is full.
fn launch_talkative_driver(directory: &str, is_sink_set: bool) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut context = DriverContext::new()
        .aeron_dir(directory)
        .option("aeron.dir.warn.if.exists", true)
        .option("aeron.print.configuration", true)
        .option("aeron.socket.so_sndbuf", "1g");
    if is_sink_set {
        context = context.on_diagnostic(move |diagnostic| {
            let kind = match diagnostic {
                Diagnostic::Configuration(_) => "configuration".to_owned(),
                Diagnostic::Warning(DriverWarning::DirectoryExists { .. }) => "exists".to_owned(),
                Diagnostic::Warning(DriverWarning::SocketBuffer { .. }) => "buffer".to_owned(),
                Diagnostic::Error(error) => format!("{error} {}", error.unlogged.is_some()),
                other => other.to_string(),
            };
            sink.lock().unwrap().push(kind);
        });
    }
    println!("{BEGIN}");
    eprintln!("{BEGIN}");
    let driver = MediaDriver::launch(context).unwrap();
    let long = "x".repeat(1 << 12);
    for code in 0..10_000 {
        if driver.errors().unlogged() > 0 {
            break;
        }
        driver.errors().on_error(1, code, &long);
    }
    driver.errors().on_error(9_000, -1, &long);
    driver.close().unwrap();
    println!("{END}");
    eprintln!("{END}");
    seen.lock().unwrap().clone()
}

#[test]
fn driver_with_sink_prints_nothing() {
    if let Ok(directory) = std::env::var(CHILD_DIRECTORY) {
        let (directory, is_sink_set) = match directory.strip_prefix("sink:") {
            Some(directory) => (directory, true),
            None => (directory.as_str(), false),
        };
        let seen = launch_talkative_driver(directory, is_sink_set);
        if is_sink_set {
            assert_eq!(seen[..3], ["configuration", "exists", "buffer"]);
            assert!(seen[3].ends_with("false"), "logged");
            let last = seen.last().unwrap();
            assert!(last.starts_with("error -1: x") && last.ends_with("true"));
        }
        return;
    }
    for is_sink_set in [false, true] {
        let scratch = Scratch::new();
        let prefix = if is_sink_set { "sink:" } else { "" };
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "driver_with_sink_prints_nothing", "--nocapture"])
            .env(CHILD_DIRECTORY, format!("{prefix}{}", scratch.0.display()))
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        let (out, err) = (driver_output(&child.stdout), driver_output(&child.stderr));
        if is_sink_set {
            assert_eq!((out.as_str(), err.as_str()), ("", ""));
        } else {
            assert!(out.contains("aeron_dir"), "{out}");
            for printed in ["WARNING: ", " exists", "net.core.wmem_max", "error "] {
                assert!(err.contains(printed), "{printed}: {err}");
            }
        }
    }
}
