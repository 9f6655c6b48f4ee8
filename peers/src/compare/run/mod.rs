// SPDX-License-Identifier: Apache-2.0
//! Measurement of one subject in one round.

mod archives;
mod ceiling;
mod clusters;
mod drivers;
mod keys;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use taran_bench::ring::{self, RingConfig};
use taran_peers::measured::Measured;

use crate::interrupt;
use crate::plan::{DriverSetup, Mode, Protocol, Subject, Task, Topology};
use crate::process::Program;
use crate::subject::{ClientArguments, Implementation, program};
use crate::testbed::{End, Place, Testbed};

use drivers::{CORES, Drivers, set_options};

/// Time limit of set-up and shutdown steps.
const TIMEOUT: Duration = Duration::from_secs(70);
/// Warm-up in milliseconds.
const WARM_UP: u64 = 500;
/// Warm-up of all subjects in milliseconds where one of them is Java, whose JIT needs it.
const WARM_UP_JAVA: u64 = 3_000;
/// Warm-up in milliseconds where thousands of streams have just been opened: new streams stay active for a while.
const WARM_UP_MANY_STREAMS: u64 = 2_000;
/// Length of the ring that shows the machine's limit, in bytes: about that of a log of three terms of 16 MiB.
const RING_LENGTH: usize = 64 << 20;
/// Shortest measurement of the load of an idle driver, in milliseconds.
const IDLE: u64 = 3_000;

/// Runs one measurement of the given duration.
pub(crate) fn once(subject: &Subject, measure_ms: u64) -> Result<Measured, String> {
    let run = Run {
        implementation: subject.implementation,
        measure_ms,
    };
    match &subject.task {
        Task::Stream(setup, topology) => run.stream(setup, *topology),
        Task::Echo(setup, rate) => run.echo(setup, *rate),
        Task::Ceiling(setup) => ceiling::highest(|rate| run.echo(setup, rate)),
        Task::First(setup) => run.first(setup),
        Task::Idle => run.idle(),
        Task::ClientStream(setup) => run.client(setup, ["publish", "subscribe"]),
        Task::ClientPing(setup) => run.client(setup, ["ping", "pong"]),
        Task::Ring(length) => run.ring(*length),
        Task::Archive(task) => run.archive(task),
        Task::Cluster(task) => run.cluster(task),
        Task::Encrypted {
            protocol,
            rate,
            length,
        } => run.encrypted(*protocol, *rate, *length),
    }
}

struct Run {
    implementation: Implementation,
    measure_ms: u64,
}

impl Run {
    fn stream(&self, setup: &DriverSetup, topology: Topology) -> Result<Measured, String> {
        let testbed = Testbed::new(&setup.place)?;
        let drivers = Drivers::start(self.implementation, setup, &testbed)?;
        let end = |role: &str, end: End| {
            let mut command = Command::new(program("drivers"));
            command.args(["--driver", self.implementation.name()]);
            if topology.idle > 0 {
                command.args(["beside", "--idle", &topology.idle.to_string()]);
            }
            command.arg(role);
            for channel in testbed.channels(end, topology) {
                command.args(["--channel", &channel]);
            }
            command.args(["--streams", &topology.streams.to_string()]);
            if topology.trickle {
                command.arg("--trickle");
            }
            command.args(["--cpus", &drivers.core(end).to_string()]);
            self.add_durations(&mut command, setup, topology);
            drivers.add_to(&mut command, end);
            testbed.at(end, None, &command)
        };
        ends(
            end("publish", End::Near),
            end("subscribe", End::Far),
            End::Far,
        )
    }

    fn echo(&self, setup: &DriverSetup, rate: u64) -> Result<Measured, String> {
        let testbed = Testbed::new(&setup.place)?;
        let drivers = Drivers::start(self.implementation, setup, &testbed)?;
        let mut command = Command::new(program("drivers"));
        // Both ends are threads of one process, each pinned to a core.
        let cores = [End::Near, End::Far].map(|end| drivers.core(end).to_string());
        command
            .args(["--driver", self.implementation.name(), "echo"])
            .args(["--rate", &rate.to_string()])
            .args(["--channel", &testbed.channel()])
            .args(["--reply-channel", &testbed.reply_channel()])
            .args(["--cpus", &cores.join(",")]);
        self.add_durations(&mut command, setup, Topology::ONE);
        drivers.add_to(&mut command, End::Near);
        let mut program = Program::start(testbed.at(End::Near, None, &command), "the round trips")?;
        measured(&mut program, None)
    }

    fn first(&self, setup: &DriverSetup) -> Result<Measured, String> {
        let testbed = Testbed::new(&setup.place)?;
        let drivers = Drivers::start(self.implementation, setup, &testbed)?;
        let mut command = Command::new(program("drivers"));
        command
            .args(["--driver", self.implementation.name(), "first"])
            .args(["--channel", &testbed.channel()])
            .args(["--cpus", &drivers.core(End::Near).to_string()]);
        self.add_durations(&mut command, setup, Topology::ONE);
        drivers.add_to(&mut command, End::Near);
        let mut program =
            Program::start(testbed.at(End::Near, None, &command), "the first messages")?;
        measured(&mut program, None)
    }

    fn idle(&self) -> Result<Measured, String> {
        let setup = DriverSetup {
            place: Place::Ipc,
            mode: Mode::Default,
            length: 0,
            options: &[],
            is_secured: false,
        };
        let drivers = Drivers::start(self.implementation, &setup, &Testbed::new(&setup.place)?)?;
        let id = drivers.id().ok_or("no driver")?;
        // Excludes the work of the start-up.
        interrupt::pause(Duration::from_secs(2))?;
        let (before, start) = (cpu_time(id)?, Instant::now());
        interrupt::pause(Duration::from_millis(self.measure_ms.max(IDLE)))?;
        let used = cpu_time(id)?.saturating_sub(before);
        let load = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
        Ok(Measured::of(load))
    }

    /// Runs both ends with the subject's client on our driver. The subscriber of a stream and the pinging end of a ping-pong
    /// report the result.
    fn client(&self, setup: &DriverSetup, [near, far]: [&str; 2]) -> Result<Measured, String> {
        let testbed = Testbed::new(&setup.place)?;
        let drivers = Drivers::start(Implementation::Taran, setup, &testbed)?;
        let directory = drivers.directory().ok_or("no driver")?;
        let end = |role: &str, end: End| {
            let command = self.implementation.client(
                role,
                &ClientArguments {
                    directory: &directory,
                    channel: &testbed.channel(),
                    length: setup.length,
                    idle: setup.mode.client_idle().unwrap_or_default(),
                    measure_ms: self.measure_ms,
                    warm_up_ms: WARM_UP_JAVA,
                },
            );
            testbed.at(end, Some(drivers.core(end)), &command)
        };
        let measuring = if far == "subscribe" {
            End::Far
        } else {
            End::Near
        };
        ends(end(near, End::Near), end(far, End::Far), measuring)
    }

    /// Runs a ring between the cores of the two ends, in this process.
    fn ring(&self, length: usize) -> Result<Measured, String> {
        let config = RingConfig {
            capacity: RING_LENGTH,
            length,
            cores: CORES,
            warmup: Duration::from_millis(WARM_UP),
            duration: Duration::from_millis(self.measure_ms),
        };
        let rate = ring::run(&config).map_err(|error| error.to_string())?;
        Ok(Measured::of(rate))
    }

    /// Runs both ends of another protocol, each with a core.
    fn encrypted(&self, protocol: Protocol, rate: u64, length: usize) -> Result<Measured, String> {
        let mut command = Command::new(program("encrypted"));
        command
            .arg(protocol.argument())
            .args(["--rate", &rate.to_string()])
            .args(["--length", &length.to_string()])
            .args(["--measure-ms", &self.measure_ms.to_string()])
            .args(["--warmup-ms", &WARM_UP.to_string()])
            .args(["--cpus", &CORES.map(|core| core.to_string()).join(",")]);
        let testbed = Testbed::new(&Place::Loopback)?;
        let mut program = Program::start(testbed.at(End::Near, None, &command), "the round trips")?;
        measured(&mut program, None)
    }

    fn add_durations(&self, command: &mut Command, setup: &DriverSetup, topology: Topology) {
        let warm_up = match setup.mode {
            Mode::Default => WARM_UP_JAVA,
            _ if topology.idle > 0 => WARM_UP_MANY_STREAMS,
            _ => WARM_UP,
        };
        command
            .args(["--length", &setup.length.to_string()])
            .args([
                "--client-idle",
                &setup.mode.client_idle().unwrap_or_default().to_string(),
            ])
            .args(["--measure-ms", &self.measure_ms.to_string()])
            .args(["--warmup-ms", &warm_up.to_string()]);
        if setup.mode == Mode::Invoker {
            set_options(command, &setup.options_of(self.implementation));
        }
    }
}

/// Starts the far end and, once it is ready, the near end. Returns the result of the measuring end.
fn ends(near: Command, far: Command, measuring: End) -> Result<Measured, String> {
    let mut far = Program::start(far, "the far end")?;
    match far.line(TIMEOUT)?.as_str() {
        "READY" => {}
        other => return Err(format!("the far end printed {other:?} instead of READY")),
    }
    let mut near = Program::start(near, "the near end")?;
    match measuring {
        End::Far => measured(&mut far, Some(&mut near)),
        End::Near => measured(&mut near, Some(&mut far)),
    }
}

/// Returns the result that a program prints. Fails early if the other end fails.
fn measured(program: &mut Program, other: Option<&mut Program>) -> Result<Measured, String> {
    let line = program.line_beside(TIMEOUT, other)?;
    serde_json::from_str(&line).map_err(|error| format!("{line:?}: {error}"))
}

/// Returns the CPU time of a process. The sum over its threads is exact, but lacks threads that have ended; the time of the process
/// has them, in whole ticks. Both are lower bounds.
fn cpu_time(id: u32) -> Result<Duration, String> {
    let path = format!("/proc/{id}/task");
    let failure = |error: std::io::Error| format!("{path}: {error}");
    let mut nanos = 0;
    for thread in std::fs::read_dir(&path).map_err(failure)? {
        nanos += thread_nanos(&thread.map_err(failure)?.path())?;
    }
    let path = format!("/proc/{id}/stat");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let of_process = process_time(&text).ok_or_else(|| format!("{path}: {text:?}"))?;
    Ok(Duration::from_nanos(nanos).max(of_process))
}

/// Returns the CPU time of a thread; zero if it has ended meanwhile.
fn thread_nanos(thread: &Path) -> Result<u64, String> {
    /// No such process: the thread has ended after its file was opened.
    const ESRCH: i32 = 3;
    let path = thread.join("schedstat");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                || error.raw_os_error() == Some(ESRCH) =>
        {
            return Ok(0);
        }
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let first = text.split_whitespace().next();
    first
        .and_then(|first| first.parse().ok())
        .ok_or_else(|| format!("{}: {text:?}", path.display()))
}

/// Returns the sum of user and system time in `/proc/PID/stat`, which are its fields 14 and 15.
fn process_time(stat: &str) -> Option<Duration> {
    // Linux reports ticks of this length on all architectures that we measure on (USER_HZ).
    const TICK: Duration = Duration::from_millis(10);
    // The name in field 2 may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * user.checked_add(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_process_is_user_and_system_time() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 3 0 0 20 0 1 0 5 1000 200";
        assert_eq!(process_time(stat), Some(Duration::from_millis(150)));
        assert_eq!(process_time("7 (a) S 1"), None);
    }

    #[test]
    fn cpu_time_has_threads_that_have_ended() {
        const USED: Duration = Duration::from_millis(100);
        let id = std::process::id();
        let before = cpu_time(id).unwrap();
        let used = std::thread::spawn(|| {
            let begin = Instant::now();
            let thread = Path::new("/proc/thread-self");
            let used = || Duration::from_nanos(thread_nanos(thread).unwrap());
            while used() < USED && begin.elapsed() < Duration::from_secs(60) {}
            used()
        });
        let used = used.join().unwrap();
        assert!(used >= USED, "{used:?}");
        let found = cpu_time(id).unwrap().saturating_sub(before);
        // Two counts of whole ticks, at both ends.
        let error = Duration::from_millis(40);
        assert!(found + error >= used, "{found:?} of {used:?}");
    }
}
