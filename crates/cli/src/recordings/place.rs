// SPDX-License-Identifier: Apache-2.0
//! The place of an archive: a directory or a control channel.

use std::net::{ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use taran::idle::{Backoff, IdleStrategy};
use taran::{ChannelUri, Client, Param};
use taran_archive::files::tools::StoppedArchive;
use taran_archive::files::{
    Catalog, CatalogFile, CatalogOptions, Checksum, LIVENESS_TIMEOUT_MS, MarkFileInfo, SyncLevel,
};
use taran_archive_client::{ArchiveClient, ArchiveContext, Recording, RequestError};
use taran_storage::{Disk, OsDisk};

use super::{now_ms, other};
use crate::failure::Failure;
use crate::input;
use crate::interrupt::{self, Interrupt};
use crate::values;

/// Stream id for requests to archives (aeron.archive.control.stream.id).
const CONTROL_STREAM_ID: i32 = 10;

/// The directory of an archive.
#[derive(Args, Debug)]
pub(super) struct Directory {
    /// Directory of the archive (aeron.archive.dir)
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A directory or a control channel, and how to connect.
#[derive(Args, Debug)]
pub(super) struct Archive {
    /// Directory of the archive (aeron.archive.dir), or control channel of a running one
    #[arg(value_name = "ARCHIVE")]
    place: PathBuf,

    /// Print JSON, one document per line
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Options of a control session.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of a control session")]
struct Connection {
    /// Directory of the driver to use [default: that of the archive in a directory; else $AERON_DIR, else
    /// /dev/shm/aeron-<user>]
    #[arg(short = 'd', long, value_name = "DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id for requests to the archive of a channel
    #[arg(long, value_name = "ID", default_value_t = CONTROL_STREAM_ID)]
    control_stream: i32,

    /// Channel on which the archive answers [default: aeron:ipc, or any port of the own address that leads to the archive]
    #[arg(long, value_name = "CHANNEL")]
    response: Option<String>,

    /// Maximum time to connect, and for each answer
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = values::millis)]
    timeout: Duration,

    /// File with the credentials for an archive that authenticates its clients
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
}

/// Place of an archive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Directory(&'a Path),
    Channel(&'a str),
}

fn place(path: &Path) -> Place<'_> {
    match path.to_str() {
        Some(text) if text.starts_with("aeron:") || text.starts_with("aeron-spy:") => {
            Place::Channel(text)
        }
        _ => Place::Directory(path),
    }
}

pub(super) fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

impl Directory {
    /// Returns the path.
    pub(super) fn path(&self) -> Result<&Path, Failure> {
        match place(&self.path) {
            Place::Directory(path) => Ok(path),
            Place::Channel(channel) => Err(Failure::Usage(format!(
                "this needs the directory of an archive on this machine (aeron.archive.dir), not its channel {channel}"
            ))),
        }
    }

    /// Opens the files for changes.
    pub(super) fn open(&self, checksum: Option<Checksum>) -> Result<StoppedArchive, Failure> {
        open(self.path()?, checksum)
    }
}

/// Opens the files in a directory for changes.
pub(super) fn open(path: &Path, checksum: Option<Checksum>) -> Result<StoppedArchive, Failure> {
    let options = CatalogOptions {
        checksum,
        sync: SyncLevel::Data,
        ..CatalogOptions::default()
    };
    StoppedArchive::open(&disk(), path, options, now_ms()).map_err(other)
}

/// Reads the catalog in a directory.
pub(super) fn read(path: &Path) -> Result<Catalog, Failure> {
    let options = CatalogOptions::default();
    let (catalog, report) = CatalogFile::read(&*disk(), path, options).map_err(other)?;
    for (id, reason) in &report.unusable {
        eprintln!("warning: recording {id} cannot be used: {reason}");
    }
    if let Some(tail) = &report.tail {
        eprintln!(
            "warning: {} bytes behind the last entry, at byte {}, are no entry",
            tail.bytes.len(),
            tail.offset
        );
    }
    Ok(catalog)
}

/// Returns true if the mark file in a directory shows an archive that runs.
pub(super) fn is_running(path: &Path) -> bool {
    MarkFileInfo::read(&*disk(), path).is_ok_and(|(_, info, _)| is_alive(&info))
}

fn is_alive(info: &MarkFileInfo) -> bool {
    let age_ms = now_ms().saturating_sub(info.activity_timestamp);
    !info.is_released() && age_ms < LIVENESS_TIMEOUT_MS
}

/// A control session.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) archive: ArchiveClient,
    pub(super) interrupt: Interrupt,
    control: String,
    idle: Backoff,
}

impl Archive {
    pub(super) fn place(&self) -> Place<'_> {
        place(&self.place)
    }

    /// Connects to the archive of the channel, or to the one that runs in the directory.
    pub(super) fn connect(&self) -> Result<Live, Failure> {
        let options = &self.connection;
        let (control, stream, own_driver) = match self.place() {
            Place::Channel(channel) => (channel.to_owned(), options.control_stream, None),
            Place::Directory(path) => {
                let (file, info, _) = MarkFileInfo::read(&*disk(), path).map_err(other)?;
                if !is_alive(&info) {
                    return Err(Failure::Other(format!(
                        "no archive runs in {} ({} has no recent heartbeat); start it with 'taran archive', or give the \
                         control channel of another one",
                        path.display(),
                        file.display()
                    )));
                }
                let driver = PathBuf::from(info.aeron_directory);
                (
                    info.local_control_channel,
                    info.local_control_stream_id,
                    Some(driver),
                )
            }
        };
        let response = match &options.response {
            Some(channel) => channel.clone(),
            None => own_channel(&control)?,
        };
        let mut context = ArchiveContext::new()
            .control_channel(&control)
            .control_stream_id(stream)
            .response_channel(response)
            .message_timeout(options.timeout)
            .client_name("taran recordings");
        if let Some(path) = &options.credentials {
            let credentials = input::read(path).map_err(|source| Failure::File {
                path: path.clone(),
                source,
            })?;
            context = context.credentials(credentials);
        }
        context
            .check()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let interrupt = interrupt::flag().map_err(other)?;
        let mut builder = Client::builder().client_name("taran recordings");
        if let Some(directory) = options.aeron_dir.as_ref().or(own_driver.as_ref()) {
            builder = builder.aeron_dir(directory);
        }
        let client = builder.connect().map_err(other)?;
        let archive = context.connect(&client).map_err(other)?;
        Ok(Live {
            archive,

            interrupt,
            control,
            idle: Backoff::default(),
        })
    }
}

impl Live {
    /// Returns a recording.
    pub(super) fn recording(&mut self, recording_id: i64) -> Result<Recording, Failure> {
        let recording = self.archive.list_recording(recording_id).map_err(other)?;
        recording.ok_or_else(|| other(format!("unknown recording {recording_id}")))
    }

    /// Returns the channel for a replay to this process.
    pub(super) fn replay_channel(&self) -> Result<String, Failure> {
        own_channel(&self.control)
    }

    /// Returns true after a signal.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits a little after a duty cycle without work.
    pub(super) fn idle(&mut self, work: usize) {
        self.idle.idle(work, &mut std::thread::sleep);
    }

    /// Fails if the archive is lost.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.archive.is_connected() {
            Ok(())
        } else {
            Err(other(RequestError::Disconnected))
        }
    }
}

/// Returns a channel on which this process can receive from what is reached by `control`.
fn own_channel(control: &str) -> Result<String, Failure> {
    let usage = |reason: String| Failure::Usage(format!("{control}: {reason}"));
    let uri = ChannelUri::parse(control).map_err(|error| usage(error.to_string()))?;
    let Some(endpoint) = uri.get(Param::Endpoint) else {
        return Ok("aeron:ipc".to_owned());
    };
    let needs = "give the channel for answers with --response";
    let mut addresses = endpoint
        .to_socket_addrs()
        .map_err(|error| usage(format!("{error}; {needs}")))?;
    let Some(address) = addresses.next() else {
        return Err(usage(format!("the host has no address; {needs}")));
    };
    // Connecting a socket for datagrams sends nothing; the kernel chooses the own address.
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let own = UdpSocket::bind(any)
        .and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()))
        .map_err(|error| usage(format!("no route: {error}; {needs}")))?;
    Ok(match own.ip() {
        std::net::IpAddr::V4(ip) => format!("aeron:udp?endpoint={ip}:0"),
        std::net::IpAddr::V6(ip) => format!("aeron:udp?endpoint=[{ip}]:0"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_channel_is_the_address_that_leads_to_the_archive() {
        let own = |control: &str| own_channel(control).unwrap();
        assert_eq!(own("aeron:ipc?term-length=64k"), "aeron:ipc");
        assert_eq!(
            own("aeron:udp?endpoint=127.0.0.1:8010"),
            "aeron:udp?endpoint=127.0.0.1:0"
        );
        for bad in ["aeron:udp?endpoint=no-port", "udp://", "aeron:udp?endpoint"] {
            assert!(own_channel(bad).is_err(), "{bad}");
        }
    }
}
