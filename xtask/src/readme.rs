// SPDX-License-Identifier: Apache-2.0
//! Runs the commands of README.md exactly as written there: `cargo xtask readme`.
//!
//! The commands are parsed from the page's code blocks, so the page and the gate cannot drift apart.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The section with the benchmark command and the test command.
const COMMANDS: &str = "## Two commands";

/// The section with the commands that start a driver and the first program, and the program itself.
const FIRST_PROGRAM: &str = "## A first program";

/// Upper bound for one command, including its build.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(900);

/// Upper bound for the driver to stop after SIGINT.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Exit code of `taran bench echo` for a machine that was too busy to hold the rate.
const RATE_NOT_HELD: i32 = 4;

/// Exit code of the driver after SIGINT: the number of the signal, as with `aeronmd`.
const DRIVER_AFTER_SIGINT: i32 = 2;

/// Number of tries for the benchmark; only `RATE_NOT_HELD` is tried again.
const TRIES: u32 = 3;

/// `cargo xtask readme`, or `cargo xtask readme test-command`, which prints the test command.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let readme = Readme::read()?;
    match arguments {
        [] => readme.run_in_fresh_clone(),
        [word] if word == "test-command" => {
            println!("{}", readme.test);
            Ok(())
        }
        _ => Err("usage: cargo xtask readme [test-command]".to_owned()),
    }
}

/// The commands of the page.
#[derive(Debug, PartialEq)]
struct Readme {
    benchmark: String,
    test: String,
    driver: String,
    program: String,
    /// Source text of the first program.
    source: String,
}

impl Readme {
    fn read() -> Result<Readme, String> {
        let path = root().join("README.md");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Readme::parse(&text)
    }

    fn parse(text: &str) -> Result<Readme, String> {
        let [benchmark, test] = commands(text, COMMANDS)?;
        let [driver, program] = commands(text, FIRST_PROGRAM)?;
        let source = blocks(text, FIRST_PROGRAM)?
            .into_iter()
            .find(|(language, _)| *language == "rust")
            .map(|(_, source)| source)
            .ok_or_else(|| format!("README.md, {FIRST_PROGRAM:?}: no block of Rust"))?;
        Ok(Readme {
            benchmark,
            test,
            driver,
            program,
            source,
        })
    }

    fn run_in_fresh_clone(&self) -> Result<(), String> {
        let clone = FreshClone::new()?;
        run_benchmark(&clone, &self.benchmark)?;
        run_first_program(&clone, &self.driver, &self.program)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Fenced blocks of one section: (language, text).
fn blocks<'a>(text: &'a str, title: &str) -> Result<Vec<(&'a str, String)>, String> {
    let start = text
        .find(&format!("{title}\n"))
        .ok_or_else(|| format!("README.md has no section {title:?}"))?;
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text[start..].lines().skip(1) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.trim(), String::new())),
            (None, None) if line.starts_with("## ") => break,
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    Ok(blocks)
}

/// The commands of a section: the lines of its shell blocks without comments.
fn commands<const N: usize>(text: &str, title: &str) -> Result<[String; N], String> {
    let blocks = blocks(text, title)?;
    let shell = blocks
        .iter()
        .filter(|(language, _)| matches!(*language, "" | "sh" | "console"));
    let commands: Vec<String> = shell
        .flat_map(|(_, block)| block.lines())
        .map(|line| {
            line.split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .filter(|line| !line.is_empty())
        .collect();
    commands.try_into().map_err(|commands| {
        format!("README.md, {title:?}: {N} commands expected, found {commands:?}")
    })
}

/// A clone of HEAD in a temporary directory, removed on drop. What is not committed is not in it.
struct FreshClone {
    directory: PathBuf,
}

impl FreshClone {
    fn new() -> Result<FreshClone, String> {
        let directory = std::env::temp_dir().join(format!("taran-readme-{}", std::process::id()));
        let clone = FreshClone { directory };
        super::run(
            Command::new("git")
                .args(["clone", "--quiet", "--no-hardlinks"])
                .arg(root())
                .arg(clone.directory.join("taran")),
        )?;
        Ok(clone)
    }

    /// A shell command in the clone, in a process group of its own, with an Aeron directory of its own.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec {line}")])
            .current_dir(self.directory.join("taran"))
            // Set by the outer cargo; a newcomer's shell has neither.
            .env_remove("CARGO")
            .env_remove("CARGO_MANIFEST_DIR")
            .env("AERON_DIR", self.directory.join("aeron"))
            // Registry dependencies stay built from one run to the next.
            .env("CARGO_TARGET_DIR", root().join("target/readme"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        command
    }
}

impl Drop for FreshClone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A running command. Its whole process group is killed on drop.
struct Running {
    line: String,
    child: Child,
    output: Receiver<String>,
}

impl Running {
    fn start(clone: &FreshClone, line: &str) -> Result<Running, String> {
        eprintln!("$ {line}");
        let mut child = clone
            .command(line)
            .spawn()
            .map_err(|error| format!("`{line}` cannot be run: {error}"))?;
        let stdout = child.stdout.take().ok_or("standard output is not piped")?;
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                println!("{line}");
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running {
            line: line.to_owned(),
            child,
            output,
        })
    }

    /// Waits for the end of the command: its exit status and what it printed on standard output.
    fn finish(mut self, timeout: Duration) -> Result<(ExitStatus, Vec<String>), String> {
        let deadline = Instant::now() + timeout;
        let mut lines = Vec::new();
        // Standard output closes when the command ends.
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("`{}` did not end within {timeout:?}", self.line));
                }
            }
        }
        let status = self
            .child
            .wait()
            .map_err(|error| format!("`{}`: {error}", self.line))?;
        Ok((status, lines))
    }

    /// Sends a signal to the process group, as a terminal does for Ctrl-C.
    fn signal(&self, name: &str) -> Result<(), String> {
        super::run(
            Command::new("kill")
                .args(["-s", name, "--"])
                .arg(format!("-{}", self.child.id()))
                .stderr(Stdio::null()),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

/// Runs the benchmark and checks that it prints percentiles and that the rate was held.
fn run_benchmark(clone: &FreshClone, line: &str) -> Result<(), String> {
    for attempt in 1..=TRIES {
        let (status, lines) = Running::start(clone, line)?.finish(COMMAND_TIMEOUT)?;
        if status.code() == Some(RATE_NOT_HELD) && attempt < TRIES {
            eprintln!(
                "`{line}`: the rate was not held on try {attempt} of {TRIES}; the machine may be busy"
            );
            continue;
        }
        if !status.success() {
            return Err(format!("`{line}` ended with {status}"));
        }
        for percentile in ["p50", "p99", "p99.9"] {
            check_percentile(line, &lines, percentile)?;
        }
        if !lines.iter().any(|printed| printed.contains("rate held")) {
            return Err(format!("`{line}` does not print \"rate held\""));
        }
        return Ok(());
    }
    Err(format!("`{line}` did not hold its rate in {TRIES} tries"))
}

/// Checks that a line with the percentile and a positive number was printed.
fn check_percentile(line: &str, printed: &[String], percentile: &str) -> Result<(), String> {
    let is_there = printed.iter().any(|printed| {
        let mut words = printed.split_whitespace();
        words.next() == Some(percentile)
            && words
                .next()
                .and_then(|word| word.parse::<f64>().ok())
                .is_some_and(|value| value > 0.0)
    });
    if is_there {
        Ok(())
    } else {
        Err(format!("`{line}` does not print {percentile}"))
    }
}

/// Starts the driver and then the program, as in two terminals, and stops the driver with SIGINT.
fn run_first_program(clone: &FreshClone, driver: &str, program: &str) -> Result<(), String> {
    let driver = Running::start(clone, driver)?;
    let (status, lines) = Running::start(clone, program)?.finish(COMMAND_TIMEOUT)?;
    if !status.success() {
        return Err(format!("`{program}` ended with {status}"));
    }
    if !lines
        .iter()
        .any(|line| line.starts_with("hello, world (stream 1001, session "))
    {
        return Err(format!("`{program}` received no message: {lines:?}"));
    }
    driver.signal("INT")?;
    let line = driver.line.clone();
    let (status, _) = driver.finish(STOP_TIMEOUT)?;
    if status.code() == Some(DRIVER_AFTER_SIGINT) {
        Ok(())
    } else {
        Err(format!("`{line}` ended with {status} after SIGINT"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n\n## Two commands\n\nText.\n\n```\ncargo run   # runs\ncargo test\n```\n\n\
        ## A first program\n\n```sh\na\nb -c\n```\n\n```rust\nfn main() {}\n```\n\n## More\n\n```\nnot this\n```\n";

    #[test]
    fn parse_page_finds_commands_without_comments() {
        let readme = Readme::parse(PAGE).unwrap();
        assert_eq!(readme.benchmark, "cargo run");
        assert_eq!(readme.test, "cargo test");
        assert_eq!((&*readme.driver, &*readme.program), ("a", "b -c"));
        assert_eq!(readme.source, "fn main() {}\n");
    }

    #[test]
    fn parse_page_with_a_command_too_many_fails() {
        let page = PAGE.replace("cargo test\n", "cargo test\ncargo bench\n");
        let error = Readme::parse(&page).unwrap_err();
        assert!(error.contains("2 commands expected"), "{error}");
    }

    #[test]
    fn parse_page_without_section_fails() {
        let page = PAGE.replace("## Two commands", "## Commands");
        assert!(Readme::parse(&page).unwrap_err().contains("no section"));
    }

    #[test]
    fn check_percentile_without_number_fails() {
        let printed = ["  p50   -".to_owned(), "  p99   17.5".to_owned()];
        assert!(check_percentile("x", &printed, "p99").is_ok());
        assert!(check_percentile("x", &printed, "p50").is_err());
        assert!(check_percentile("x", &printed, "p9").is_err());
    }

    #[test]
    fn readme_program_is_the_example_of_that_name() {
        let readme = Readme::read().unwrap();
        let example = root().join("crates/client/examples/hello.rs");
        let example = fs::read_to_string(example).unwrap();
        let code = example.split_once("\n\n").unwrap().1;
        assert_eq!(readme.source, code);
        assert!(readme.program.ends_with("--example hello"));
    }

    #[test]
    fn embedding_program_of_the_page_is_the_tested_example() {
        let page = fs::read_to_string(root().join("README.md")).unwrap();
        let [(_, program)] = &blocks(&page, "## A driver in your own program").unwrap()[..] else {
            panic!("one program expected");
        };
        let example = root().join("crates/client/examples/single_thread.rs");
        let example = fs::read_to_string(example).unwrap();
        let code = example.split_once("\n\n").unwrap().1;
        assert_eq!(*program, code.replace("pub(crate) fn main", "fn main"));
    }
}
