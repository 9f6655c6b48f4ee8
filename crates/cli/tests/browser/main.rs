// SPDX-License-Identifier: Apache-2.0
//! The page of `taran console` in headless Chromium, driven by Playwright (`page.py`) through a live world of drivers and clients.
//!
//! `cargo xtask browser` runs these tests, with a Python that has Playwright in `TARAN_BROWSER_PYTHON` and the browser in
//! `TARAN_BROWSER`. With `TARAN_BROWSER_PICTURES` the pictures are kept in that directory.

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_address.rs"]
mod own_address;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../command/process.rs"]
mod process;
mod world;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use process::{Directory, Driver, taran};
use world::World;

/// A `taran console` process, killed when dropped.
struct Console {
    child: Child,
    url: String,
}

impl Console {
    fn start(address: &str, directories: &[&Directory]) -> Console {
        let mut command = taran(&["console", "--listen", address, "-u", "200", "-d"]);
        for (index, directory) in directories.iter().enumerate() {
            if index > 0 {
                command.arg("--also");
            }
            command.arg(directory.path());
        }
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("taran can be run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it says where it listens");
        let url = line.trim().strip_prefix("listening on ");
        Console {
            child,
            url: url.expect("it says where it listens").to_owned(),
        }
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches('/')
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a part of `page.py`. It asks for changes of the world by lines on its standard output, which `act` makes.
fn browse(part: &str, console: &Console, mut act: impl FnMut(&str)) {
    let python = std::env::var("TARAN_BROWSER_PYTHON").expect("cargo xtask browser sets it");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/page.py");
    let mut child = Command::new(python)
        .args([script, part, &console.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python can be run");
    let mut input = child.stdin.take().expect("it is piped");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    for line in output.lines() {
        let line = line.expect("it prints text");
        if let Some(action) = line.strip_prefix("please ") {
            act(action);
            input.write_all(b"done\n").expect("it reads");
        } else {
            println!("{line}");
        }
    }
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{part}: {status}");
}

fn nothing(action: &str) {
    panic!("no action {action}");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn page_shows_a_busy_and_a_missing_driver() {
    let (busy, missing) = (
        Directory::new("browser-busy"),
        Directory::new("browser-missing"),
    );
    let driver = Driver::start(busy.path(), &[]);
    let world = World::desk(busy.path());
    let console = Console::start("127.0.0.1:0", &[&busy, &missing]);
    browse("desk", &console, nothing);
    drop(world);
    driver.stop("TERM").assert_code(15);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn page_with_two_hundred_streams_is_usable() {
    let directory = Directory::new("browser-many");
    let driver = Driver::start(directory.path(), &["aeron.socket.so_rcvbuf=128k"]);
    let world = World::many(directory.path(), 200);
    let console = Console::start("127.0.0.1:0", &[&directory]);
    browse("many", &console, nothing);
    drop(world);
    driver.stop("TERM").assert_code(15);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn page_outlives_driver_and_console() {
    let directory = Directory::new("browser-life");
    let mut driver = Some(Driver::start(directory.path(), &[]));
    let mut world = Some(World::desk(directory.path()));
    let first = Console::start("127.0.0.1:0", &[&directory]);
    let address = first.address().to_owned();
    let url = Console {
        child: Command::new("true").spawn().expect("a process"),
        url: first.url.clone(),
    };
    let mut console = Some(first);
    browse("life", &url, |action| match action {
        "kill the driver" => {
            driver.take().expect("it runs").stop("KILL");
            world = None;
        }
        "start the driver" => {
            driver = Some(Driver::start(directory.path(), &[]));
            world = Some(World::desk(directory.path()));
        }
        "end the console" => console = None,
        "start the console" => console = Some(Console::start(&address, &[&directory])),
        other => nothing(other),
    });
    drop(world);
    driver.expect("it runs").stop("TERM").assert_code(15);
}
