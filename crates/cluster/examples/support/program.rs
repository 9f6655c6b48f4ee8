// SPDX-License-Identifier: Apache-2.0
//! Command line of the examples.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use taran::Client;
use taran_cluster::service::Service;

use super::Failure;
use super::client::{self, Dialogue};
use super::member::{Hosts, Member, driver};

const USAGE: &str =
    "usage: EXAMPLE [member ID | client] [--dir DIR] [--hosts HOST[,HOST,HOST]] [--egress HOST]
  (nothing)    a cluster of one member, and a client of it, in this process
  member ID    member 0, 1 or 2 of three, until its input ends
  client       a client of the three members
  --dir        directory of the members, which is kept (otherwise a temporary one, which is deleted)
  --hosts      hosts of the members, or one for all (127.0.0.1)
  --egress     host of the client, to which the members send (127.0.0.1)";

/// Part that the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    All,
    Member(usize),
    Client,
}

#[derive(Debug)]
struct Arguments {
    role: Role,
    dir: Option<PathBuf>,
    hosts: Hosts,
    egress: String,
}

impl Arguments {
    fn read(words: &[String]) -> Result<Self, Failure> {
        let (mut role, mut dir) = (Role::All, None);
        let mut hosts = vec!["127.0.0.1".to_owned()];
        let mut egress = "127.0.0.1".to_owned();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("{word} needs a value\n{USAGE}"))
            };
            match word.as_str() {
                "member" => {
                    let id = value()?;
                    let id = id.parse().ok().filter(|id| *id < 3);
                    role = Role::Member(id.ok_or("member needs 0, 1 or 2")?);
                }
                "client" => role = Role::Client,
                "--dir" => dir = Some(PathBuf::from(value()?)),
                "--hosts" => hosts = value()?.split(',').map(str::to_owned).collect(),
                "--egress" => value()?.clone_into(&mut egress),
                _ => return Err(format!("{word} is no argument\n{USAGE}").into()),
            }
        }
        let count = if role == Role::All { 1 } else { 3 };
        let hosts = match &hosts[..] {
            [host] => Hosts::one(host, count),
            _ if hosts.len() == count => Hosts::new(hosts),
            _ => {
                return Err(
                    format!("--hosts needs 1 or {count} hosts, not {}", hosts.len()).into(),
                );
            }
        };
        Ok(Self {
            role,
            dir,
            hosts,
            egress,
        })
    }

    /// Returns the channel on which the client receives.
    fn egress(&self) -> String {
        format!("aeron:udp?endpoint={}:0", self.egress)
    }
}

/// A temporary directory, or one of the user.
struct Directory {
    path: PathBuf,
    is_temporary: bool,
}

impl Directory {
    fn new(of_user: Option<PathBuf>) -> Self {
        let is_temporary = of_user.is_none();
        let path = of_user.unwrap_or_else(|| {
            let name = format!("taran-example-{}", std::process::id());
            Path::new("/dev/shm").join(name)
        });
        Self { path, is_temporary }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Output of client and service.
#[derive(Clone)]
pub(crate) struct Output(Arc<Mutex<dyn Write + Send>>);

impl Output {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write(bytes)
    }

    /// Writes a line as a whole.
    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_fmt(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.flush()
    }
}

/// Runs a member with this service, a client with this dialogue, or both, until the input ends.
pub(crate) fn run<S: Service + 'static>(
    arguments: &[String],
    mut input: impl BufRead + Send + 'static,
    mut output: Output,
    service: S,
    dialogue: &mut dyn Dialogue,
) -> Result<(), Failure> {
    let arguments = Arguments::read(arguments)?;
    let Arguments { role, hosts, .. } = &arguments;
    let (ingress, egress) = (hosts.ingress(), arguments.egress());
    if *role == Role::Client {
        let driver = driver()?;
        let client = Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
        let result = client::run(&client, &ingress, &egress, dialogue, input, &mut output);
        client.close();
        driver.close()?;
        return result;
    }
    let id = match role {
        Role::Member(id) => *id,
        _ => 0,
    };
    let dir = Directory::new(arguments.dir.clone());
    let member = Member::start(id, hosts, &dir.path, service)?;
    let (count, path) = (hosts.count(), member.dir().display());
    writeln!(output, "member {id} of {count}, directory {path}")?;
    let result = if *role == Role::All {
        let client = member.client()?;
        let result = client::run(&client, &ingress, &egress, dialogue, input, &mut output);
        client.close();
        result
    } else {
        // A member reads nothing; the end of its input ends it.
        let read = input.read_to_end(&mut Vec::new());
        read.map(drop).map_err(Into::into)
    };
    let closed = member.close();
    result.and(closed)
}
