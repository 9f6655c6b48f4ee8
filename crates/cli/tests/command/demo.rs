// SPDX-License-Identifier: Apache-2.0
//! `taran cluster demo`: what it prints, and that it leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use crate::process::{Directory, run, signal, taran};
use crate::traffic::await_true;

/// A demo whose output is read line by line. Killed when dropped.
struct Demo {
    child: Child,
    lines: BufReader<ChildStdout>,
    members: Vec<u32>,
}

impl Demo {
    /// Starts a demo, and reads the lines about its members.
    fn start(members: usize, arguments: &[&str]) -> Demo {
        let count = members.to_string();
        let mut command = taran(&["cluster", "demo", "--members", &count]);
        let mut child = command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("taran can be run");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut demo = Demo {
            child,
            lines,
            members: Vec::new(),
        };
        let first = demo.line();
        let expected = format!("taran cluster demo: members {count}, directory ");
        assert!(first.starts_with(&expected), "{first}");
        for id in 0..members {
            let line = demo.line();
            let rest = line.strip_prefix(&format!("member {id}: pid "));
            let pid = rest.and_then(|rest| rest.split(',').next()?.parse().ok());
            demo.members.push(pid.unwrap_or_else(|| panic!("{line}")));
        }
        demo
    }

    /// Returns the next line; an empty one at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line
    }

    /// Reads up to a line that has this text.
    fn await_line(&mut self, text: &str) -> String {
        let mut read = String::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "no {text:?} in {read}{}", self.errors());
            if line.contains(text) {
                return line;
            }
            read.push_str(&line);
        }
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let mut pipe = self.child.stderr.take().expect("it is read once");
        pipe.read_to_string(&mut text).expect("text");
        text
    }

    fn temporary_dir(&self) -> PathBuf {
        format!("/dev/shm/taran-demo-{}", self.child.id()).into()
    }

    /// Checks that it has succeeded, and has left no process and no file.
    fn assert_ended(mut self) {
        while !self.line().is_empty() {}
        assert_eq!(self.errors(), "");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
        assert!(!self.temporary_dir().exists());
        for pid in &self.members {
            assert!(!is_member(*pid), "member {pid} is left");
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(self.temporary_dir());
    }
}

/// Returns true if a process with this id runs as a member.
fn is_member(pid: u32) -> bool {
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline"));
    command.is_ok_and(|command| command.contains("--parent="))
}

fn number_after(line: &str, text: &str) -> u32 {
    let rest = line.split(text).nth(1).expect(text);
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    let digits = digits.expect("a first part");
    digits.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn demo_shows_answers_and_a_failover_and_leaves_nothing_after_sigterm() {
    let mut demo = Demo::start(3, &["--kill-leader-after", "1"]);
    demo.await_line(" leads, ");
    let killed = demo.await_line(", the leader, is killed: pid ");
    let leader = number_after(&killed, "member ");
    let pid = number_after(&killed, "pid ");
    assert_eq!(demo.members[leader as usize], pid);
    let failover = demo.await_line("failover: member ");
    assert_ne!(number_after(&failover, "member "), leader);
    let restarted = demo.await_line(&format!("member {leader} is started again, pid "));
    demo.members[leader as usize] = number_after(&restarted, "pid ");
    let caught_up = demo.await_line(&format!("member {leader} has caught up "));
    assert!(number_after(&caught_up, "at position ") > 0, "{caught_up}");
    let answers = demo.await_line(" came back after ");
    assert!(answers.starts_with("\"message "), "{answers}");
    assert!(answers.contains(" leads"), "{answers}");
    signal(demo.child.id(), "TERM");
    demo.assert_ended();
}

#[test]
fn demo_ends_by_itself_after_its_time_and_keeps_the_directory_of_its_user() {
    let root = Directory::new("demo");
    let dir = root.path().display().to_string();
    let demo = Demo::start(1, &["--seconds", "1", "--dir", &dir]);
    demo.assert_ended();
    let log = format!("{dir}/member-0/cluster");
    run(&mut taran(&["members", "recording-log", &log]))
        .assert_code(0)
        .assert_silent();
    run(&mut taran(&["cluster", "demo", "--dir", &dir]))
        .assert_code(2)
        .assert_stderr("is not empty");
}

#[test]
fn members_of_a_killed_demo_end() {
    let mut demo = Demo::start(1, &[]);
    demo.await_line("member 0 leads, ");
    let member = demo.members[0];
    assert!(is_member(member));
    signal(demo.child.id(), "KILL");
    await_true("the end of the member", || !is_member(member));
}

#[test]
fn failover_without_a_quorum_is_refused() {
    run(&mut taran(&["cluster", "demo", "--members", "2"]))
        .assert_code(2)
        .assert_stderr("needs 1, 3, 5 or 7");
    let mut command = taran(&["cluster", "demo", "--members", "1"]);
    run(command.args(["--kill-leader-after", "1"]))
        .assert_code(2)
        .assert_stderr("at least --members 3");
}
