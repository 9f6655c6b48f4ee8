// SPDX-License-Identifier: Apache-2.0
//! `taran top` on a terminal of its own.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::process::{Directory, Driver, run, taran};
use crate::traffic::{Traffic, await_true};

const ENTER_ALTERNATE_SCREEN: &str = "\x1b[?1049h";
const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

/// A pseudo-terminal with a program.
struct Terminal {
    keyboard: File,
    /// The side of the program; keeps the terminal open after its end.
    line: OwnedFd,
    /// Modes before the start of the program, such as the echo of keys.
    modes: LocalModes,
    shown: Arc<Mutex<String>>,
    child: Child,
}

impl Terminal {
    fn start(directory: &Directory, columns: u16, rows: u16) -> Terminal {
        let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&control).unwrap();
        unlockpt(&control).unwrap();
        let path = ptsname(&control, Vec::new()).unwrap();
        let line = rustix::fs::open(
            path.as_c_str(),
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&line, size).unwrap();
        let modes = tcgetattr(&line).unwrap().local_modes;
        let stdio = || Stdio::from(line.try_clone().unwrap());
        let child = taran(&["top", "-u", "50"])
            .env("AERON_DIR", directory.path())
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        let keyboard = File::from(control);
        let shown = Arc::new(Mutex::new(String::new()));
        let mut output = keyboard.try_clone().unwrap();
        let into = Arc::clone(&shown);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = output.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                into.lock().unwrap().push_str(&text);
            }
        });
        Terminal {
            keyboard,
            line,
            modes,
            shown,
            child,
        }
    }

    fn shows(&self, text: &str) -> bool {
        self.shown.lock().unwrap().contains(text)
    }

    fn clear(&self) {
        self.shown.lock().unwrap().clear();
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn top_shows_streams_until_q_and_restores_the_terminal() {
    let directory = Directory::new("top");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    let mut terminal = Terminal::start(&directory, 80, 24);
    await_true("the stream", || terminal.shows("       1001 "));
    assert!(terminal.shows(ENTER_ALTERNATE_SCREEN));
    assert!(terminal.shows("2 of 2 streams, order: rate") || terminal.shows("1 of 1 streams"));

    // Each key alone, as a person types.
    for key in ["/", "n", "o", "n", "e"] {
        terminal.press(key);
    }
    await_true("the filter", || terminal.shows("filter: none_"));
    await_true("no stream", || terminal.shows("0 of "));
    terminal.clear();
    terminal.press("\x1b");
    await_true("all streams", || terminal.shows("       1001 "));
    terminal.press("s");
    await_true("the next order", || terminal.shows("order: lag"));
    terminal.press("q");
    assert!(terminal.wait().success());
    await_true("the end of the screen", || {
        terminal.shows(LEAVE_ALTERNATE_SCREEN)
    });
    let after = tcgetattr(&terminal.line).unwrap().local_modes;
    assert_eq!(after, terminal.modes);
    drop(traffic);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn top_ends_with_its_driver_and_says_so() {
    let directory = Directory::new("top-end");
    let driver = Driver::start(directory.path(), &[]);
    let mut terminal = Terminal::start(&directory, 80, 24);
    await_true("an empty driver", || terminal.shows("no streams"));
    driver.stop("TERM").assert_code(15);
    assert_eq!(terminal.wait().code(), Some(1));
    await_true("the reason", || terminal.shows("has shut down"));
    let shown = terminal.shown.lock().unwrap().clone();
    // The reason is not on the screen that goes away.
    let screen = shown
        .rfind(LEAVE_ALTERNATE_SCREEN)
        .expect("the screen ends");
    assert!(shown[screen..].contains("has shut down"), "{shown:?}");
}

#[test]
fn top_on_tiny_terminal_ends_by_control_c() {
    let directory = Directory::new("top-tiny");
    let driver = Driver::start(directory.path(), &[]);
    let mut terminal = Terminal::start(&directory, 10, 3);
    await_true("the screen", || terminal.shows("taran top"));
    terminal.press("\x03");
    assert!(terminal.wait().success());
    driver.stop("TERM").assert_code(15);
}

#[test]
fn top_without_terminal_names_other_commands() {
    run(&mut taran(&["top"]))
        .assert_code(1)
        .assert_stderr("needs a terminal")
        .assert_stderr("taran stat --once");
}
