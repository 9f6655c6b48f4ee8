// SPDX-License-Identifier: Apache-2.0
//! `taran cluster demo`: a cluster on this machine, with a client that shows what it does.

mod catch_up;
mod echo_client;
mod members;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use taran::idle::{Backoff, IdleStrategy};

use self::catch_up::{CatchUp, Position};
use self::echo_client::{EchoClient, Happening};
use self::members::Members;
use self::report::{Report, duration};
use crate::failure::Failure;
use crate::{interrupt, output};

/// Interval of checks that all members are running.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Each member is a process with its own media driver and archive and the service echo. They use a loopback address of their
own (127.128.0.0/10), so several demos can run. A client sends 100 messages per second, one after the other, and prints
each second what came back and how long the round trips took.

  taran cluster demo                                        until Ctrl-C
  taran cluster demo --kill-leader-after 5 --seconds 10     shows a failover
  taran cluster demo --members 1 --seconds 3

With --kill-leader-after the process of the leader is killed (SIGKILL). The time until the first answer of the next leader
is printed. The member is started again, and the time until it has caught up with the log is printed. 'taran members
describe' shows each member meanwhile, by the directories that are printed at the start; clients of your own can use the
ingress endpoints that are printed with them.

Options come from the demo alone: environment variables AERON_... and TARAN_... are not read.

SIGINT and SIGTERM end client, members, archives and drivers in order. Nothing is left behind but the directory of --dir.

Exit status: 0 after a signal or the time of --seconds, 1 if a part could not start or failed, 2 incorrect usage.")]
pub(super) struct Arguments {
    /// Number of members: 1, 3, 5 or 7
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = members)]
    members: usize,

    /// End this many seconds after a leader is elected
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,

    /// Kill the leader this many seconds after it is elected
    #[arg(long, value_name = "SECONDS")]
    kill_leader_after: Option<u64>,

    /// New or empty directory for archives and state of the members, which is kept. By default they are in memory, below
    /// /dev/shm, and deleted at the end
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn members(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|number| [1, 3, 5, 7].contains(number))
        .ok_or_else(|| "needs 1, 3, 5 or 7".to_owned())
}

/// Runs the demo until it is stopped, or its time has passed.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let (1, Some(_)) = (arguments.members, arguments.kill_leader_after) {
        return Err(Failure::Usage(
            "--kill-leader-after needs a cluster that goes on without its leader: at least --members 3".to_owned(),
        ));
    }
    // Registered first, so that a signal during the start also ends what has been started.
    let stop = interrupt::flag()
        .map_err(|error| Failure::Other(format!("cannot register signal handlers: {error}")))?;
    let begin = Instant::now();
    let mut members = Members::start(arguments.members, arguments.dir.as_deref())?;
    output::text(&members.to_string())?;
    let mut client = EchoClient::start(members.runtime_dir(), &members.ingress())?;
    let mut demo = Demo {
        kill_after: arguments.kill_leader_after.map(Duration::from_secs),
        elected: None,
        failover: None,
        catch_up: None,
        report: Report::new(begin),
    };
    let length = arguments.seconds.map(Duration::from_secs);
    let mut idle = Backoff::default();
    let mut check = begin + CHECK_INTERVAL;
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if let (Some(elected), Some(length)) = (demo.elected, length)
            && now >= elected + length
        {
            break;
        }
        let work = client.do_work(now)?;
        while let Some(happening) = client.next_happening() {
            demo.on_happening(now, happening, begin, &mut members)?;
        }
        if let Some(line) = demo.report.take_line(now) {
            output::text(&line)?;
        }
        demo.kill_if_due(now, &client, &mut members)?;
        if now >= check {
            members.check()?;
            check = now + CHECK_INTERVAL;
        }
        demo.show_catch_up(now, &members)?;
        idle.idle(work, &mut thread::sleep);
    }
    if let Some(catch_up) = &demo.catch_up {
        let member = catch_up.member();
        output::text(&format!(
            "member {member} has not caught up when the demo ends\n"
        ))?;
    }
    client.close()?;
    members.end()?;
    Ok(ExitCode::SUCCESS)
}

/// Progress of the demo.
struct Demo {
    /// Time between the first election and the kill; none if it has been, or is not to be.
    kill_after: Option<Duration>,
    elected: Option<Instant>,
    failover: Option<Failover>,
    /// Of the member that was started again.
    catch_up: Option<CatchUp>,
    report: Report,
}

/// A leader that was killed, and has no successor that answers yet.
struct Failover {
    killed: usize,
    at: Instant,
    has_leader: bool,
}

impl Demo {
    fn on_happening(
        &mut self,
        now: Instant,
        happening: Happening,
        begin: Instant,
        members: &mut Members,
    ) -> Result<(), Failure> {
        match happening {
            Happening::Leader(member) => {
                self.report.set_leader(member);
                if let Some(failover) = &mut self.failover {
                    failover.has_leader = true;
                    return Ok(());
                }
                let first = match self.elected.replace(self.elected.unwrap_or(now)) {
                    None => format!(", {} after the start", duration(now - begin)),
                    Some(_) => String::new(),
                };
                output::text(&format!("member {member} leads{first}\n"))
            }
            Happening::LeaderLost(member) => {
                output::text(&format!("member {member} does not lead any longer\n"))
            }
            Happening::Answer {
                message,
                round_trip,
            } => {
                self.report.add(now, message, round_trip);
                match self.failover.take_if(|failover| failover.has_leader) {
                    Some(failover) => self.on_failover(now, &failover, members),
                    None => Ok(()),
                }
            }
        }
    }

    fn on_failover(
        &mut self,
        now: Instant,
        failover: &Failover,
        members: &mut Members,
    ) -> Result<(), Failure> {
        let killed = failover.killed;
        output::text(&format!(
            "failover: member {} leads, its first answer came {} after the kill\n",
            self.report.leader(),
            duration(now - failover.at),
        ))?;
        let pid = members.restart(killed)?;
        self.catch_up = Some(CatchUp::new(killed, pid, Instant::now()));
        output::text(&format!("member {killed} is started again, pid {pid}\n"))
    }

    fn show_catch_up(&mut self, now: Instant, members: &Members) -> Result<(), Failure> {
        let leader = self.report.leader();
        let Some(catch_up) = self.catch_up.as_mut().filter(|it| it.is_due(now)) else {
            return Ok(());
        };
        let member = catch_up.member();
        let position = |member| Position::read(&members.driver_dir(member));
        if let Some((reached, time)) = catch_up.poll(now, position(leader), position(member)) {
            self.catch_up = None;
            output::text(&format!(
                "member {member} has caught up {} after it was started again: it follows at position {reached} of the log\n",
                duration(time)
            ))?;
        }
        Ok(())
    }

    fn kill_if_due(
        &mut self,
        now: Instant,
        client: &EchoClient,
        members: &mut Members,
    ) -> Result<(), Failure> {
        let (Some(elected), Some(after)) = (self.elected, self.kill_after) else {
            return Ok(());
        };
        let Some(leader) = client.leader().filter(|_| now >= elected + after) else {
            return Ok(());
        };
        self.kill_after = None;
        let pid = members.kill(leader)?;
        self.failover = Some(Failover {
            killed: leader,
            at: Instant::now(),
            has_leader: false,
        });
        output::text(&format!(
            "member {leader}, the leader, is killed: pid {pid}, SIGKILL\n"
        ))
    }
}
