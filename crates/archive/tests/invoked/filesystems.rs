// SPDX-License-Identifier: Apache-2.0
//! An archive on real file systems: ext4 and xfs on a loop device, and tmpfs. Each test mounts one in its own mount namespace, and
//! says so and is skipped where that is not possible. `TARAN_REQUIRE_NAMESPACES=1` turns the skip of tmpfs into a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use taran_archive_client::protocol::RecordingSignal;
use taran_archive_client::{ArchiveEvent, ReplayParams};

use crate::fixture::{CHANNEL, Invoked};
use crate::own_namespaces::{Flags, INSIDE, inside, skipped};

const STREAM: i32 = 1;
const MESSAGE: [u8; 1_000] = [7; 1_000];
/// Counter of recordings that wait for space.
const HELD_RECORDINGS: i32 = 2_101;
/// Held by a test while it uses a loop device: a machine may have only one that is free.
static LOOP_DEVICE: Mutex<()> = Mutex::new(());

/// Kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ext4,
    Xfs,
    Tmpfs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// Smallest sizes that the tools make, in MiB.
    fn size_mib(self) -> u64 {
        match self {
            Self::Ext4 | Self::Tmpfs => 48,
            Self::Xfs => 320,
        }
    }
}

fn succeeds(command: &[&str]) -> bool {
    Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[track_caller]
fn run(command: &[&str]) -> String {
    let output = Command::new(command[0])
        .args(&command[1..])
        .output()
        .expect("the command exists");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs the body of a test in a mount namespace of its own, or says why it cannot: a kind of file system that this machine does
/// not have is always skipped.
fn on(kind: Kind, test: &str, body: impl FnOnce()) {
    if kind == Kind::Tmpfs {
        return inside(test, mount_flags, body);
    }
    let flags: Flags = &["-m"];
    // A panic of another test leaves nothing half done: the lock guards no data.
    let _held = LOOP_DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if std::env::var_os(INSIDE).is_none()
        && let Err(why) = try_mount(kind)
    {
        return skipped(test, &why);
    }
    inside(test, || Ok(flags), body);
}

/// Returns the `unshare` flags for a mount namespace: directly as root, otherwise within a user namespace.
fn mount_flags() -> Result<Flags, String> {
    let candidates: [Flags; 2] = [&["-m"], &["-r", "-m"]];
    let works = |flags: &Flags| {
        let mut command = vec!["unshare"];
        command.extend(*flags);
        command.extend(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
        succeeds(&command)
    };
    let found = candidates.into_iter().find(works);
    found.ok_or_else(|| "mount namespaces cannot be made here (unshare -m)".to_owned())
}

/// Makes and mounts a file system, and removes it.
fn try_mount(kind: Kind) -> Result<(), String> {
    let name = kind.name();
    let script = format!(
        "set -e; d=$(mktemp -d); trap 'rm -rf $d' EXIT; truncate -s {}M $d/image; mkfs.{name} -q $d/image; mkdir $d/m; \
         mount -o loop $d/image $d/m; umount $d/m",
        kind.size_mib()
    );
    if succeeds(&["unshare", "-m", "sh", "-c", &script]) {
        Ok(())
    } else {
        Err(format!(
            "no {name} can be mounted from a loop device (root, mkfs.{name}, a free loop device)"
        ))
    }
}

/// A file system, unmounted when it is dropped. The kernel frees its loop device with the last use, also if the test is killed.
struct Mounted {
    directory: PathBuf,
}

impl Mounted {
    fn new(kind: Kind, name: &str) -> Self {
        let base = std::env::temp_dir().join(format!("taran-{}-{name}", std::process::id()));
        let directory = base.join("mounted");
        std::fs::create_dir_all(&directory).expect("there is a directory for temporary files");
        let mounted = Self { directory };
        let target = mounted.path();
        let size_mib = kind.size_mib();
        if kind == Kind::Tmpfs {
            let size = format!("size={size_mib}m");
            run(&["mount", "-t", "tmpfs", "-o", &size, "tmpfs", target]);
            return mounted;
        }
        let image = base.join("image");
        let file = std::fs::File::create(&image).expect("there is room");
        file.set_len(size_mib << 20).expect("files can be sparse");
        let image_path = image.to_str().expect("a path in ASCII");
        run(&[&format!("mkfs.{}", kind.name()), "-q", image_path]);
        run(&["mount", "-o", "loop", image_path, target]);
        mounted
    }

    fn path(&self) -> &str {
        self.directory.to_str().expect("a path in ASCII")
    }

    /// Takes the file system away from its directory: what is open stays so, and nothing more is found there.
    fn pull_away(&self) {
        run(&["umount", "-l", self.path()]);
    }

    /// Takes all space but this; returns the file that takes it.
    fn fill(&self, left_mib: u64) -> PathBuf {
        let filler = self.directory.join("filler");
        let free = run(&["df", "-B1", "--output=avail", self.path()]);
        let free: u64 = free
            .lines()
            .last()
            .and_then(|line| line.trim().parse().ok())
            .expect("df prints a number");
        let length = free.saturating_sub(left_mib << 20).to_string();
        let path = filler.to_str().expect("a path in ASCII");
        run(&["fallocate", "-l", &length, path]);
        filler
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        succeeds(&["umount", "-l", self.path()]);
        if let Some(base) = self.directory.parent() {
            let _ = std::fs::remove_dir_all(base);
        }
    }
}

fn archive_on(directory: &Path, level: &str) -> Invoked {
    let directory = directory.join("archive");
    Invoked::new(
        "filesystem",
        &[
            ("aeron.archive.dir", directory.to_str().expect("ASCII")),
            ("aeron.archive.segment.file.length", "1m"),
            ("aeron.archive.low.storage.space.threshold", "0"),
            ("aeron.archive.file.sync.level", level),
            ("aeron.archive.catalog.file.sync.level", level),
        ],
    )
}

fn counter(archive: &Invoked, type_id: i32) -> i64 {
    let counters = archive.client.counters();
    let found = counters.find(|meta| meta.type_id == type_id);
    found
        .and_then(|meta| counters.value(meta.id))
        .expect("the archive has the counter")
}

/// A full disk holds the publisher; with space again, all is recorded and replayed.
fn full(kind: Kind) {
    let mounted = Mounted::new(kind, "full");
    let mut archive = archive_on(&mounted.directory, "1");
    let (mut publication, recording_id) = archive.record(STREAM);
    archive.run_until(|_| publication.offer(&MESSAGE).ok());
    let filler = mounted.fill(3);
    let mut sent = 1_u64;
    archive.run_until(|archive| {
        if publication.offer(&MESSAGE).is_ok() {
            sent += 1;
        }
        (counter(archive, HELD_RECORDINGS) == 1).then_some(())
    });
    assert!(sent > 1_000, "{sent} messages found room");
    std::fs::remove_file(filler).expect("it is ours");
    let more = sent + 2_000;
    archive.run_until(|archive| {
        if sent < more && publication.offer(&MESSAGE).is_ok() {
            sent += 1;
        }
        (sent == more && counter(archive, HELD_RECORDINGS) == 0).then_some(())
    });
    let end = publication.position();
    let recorded = archive.recorded_position(recording_id);
    archive.run_until(|_| (recorded.get() == end).then_some(()));
    let call = archive.connection().stop_recording(CHANNEL, STREAM);
    archive.wait(call);
    archive.wait_for(RecordingSignal::STOP);
    let mut replayed = archive.replay(recording_id, STREAM + 1, &ReplayParams::new());
    let mut received = 0;
    archive.run_until(|_| {
        let polled = replayed.poll(
            |message, _| {
                assert_eq!(message, MESSAGE);
                received += 1;
            },
            50,
        );
        polled.expect("the client lives");
        (received == sent).then_some(())
    });
}

#[test]
fn ext4_that_is_full_holds_the_publisher_until_there_is_space() {
    let test = "filesystems::ext4_that_is_full_holds_the_publisher_until_there_is_space";
    on(Kind::Ext4, test, || full(Kind::Ext4));
}

#[test]
fn xfs_that_is_full_holds_the_publisher_until_there_is_space() {
    let test = "filesystems::xfs_that_is_full_holds_the_publisher_until_there_is_space";
    on(Kind::Xfs, test, || full(Kind::Xfs));
}

#[test]
fn tmpfs_that_is_full_holds_the_publisher_until_there_is_space() {
    let test = "filesystems::tmpfs_that_is_full_holds_the_publisher_until_there_is_space";
    on(Kind::Tmpfs, test, || full(Kind::Tmpfs));
}

/// The archive does not start on a file system that is read-only, says why, and leaves the recordings as they are.
fn read_only(kind: Kind) {
    let mounted = Mounted::new(kind, "read-only");
    let mut archive = archive_on(&mounted.directory, "0");
    let (mut publication, recording_id) = archive.record(STREAM);
    archive.run_until(|_| publication.offer(&MESSAGE).ok());
    let end = publication.position();
    let recorded = archive.recorded_position(recording_id);
    archive.run_until(|_| (recorded.get() == end).then_some(()));
    drop(publication);
    drop(archive);
    run(&["mount", "-o", "remount,ro", mounted.path()]);
    let before = run(&["ls", "-lR", "--time-style=full-iso", mounted.path()]);
    let directory = mounted.directory.join("archive");
    let options = [
        ("aeron.archive.dir", directory.to_str().expect("ASCII")),
        ("aeron.archive.segment.file.length", "1m"),
    ];
    let error = Invoked::launch("read-only", &options)
        .err()
        .expect("the archive cannot start");
    assert!(
        error.contains(mounted.path()) && error.to_lowercase().contains("read-only"),
        "{error}"
    );
    let after = run(&["ls", "-lR", "--time-style=full-iso", mounted.path()]);
    assert_eq!(before, after);
    run(&["mount", "-o", "remount,rw", mounted.path()]);
    let mut archive = archive_on(&mounted.directory, "0");
    let call = archive.connection().list_recording(recording_id);
    let found = archive.wait(call).expect("there is a recording");
    assert_eq!(found.stop_position, Some(end));
}

#[test]
fn ext4_that_is_read_only_is_refused_at_the_start() {
    let test = "filesystems::ext4_that_is_read_only_is_refused_at_the_start";
    on(Kind::Ext4, test, || read_only(Kind::Ext4));
}

/// The recording ends where it was acknowledged, and the archive goes on: its catalog is open.
#[test]
fn ext4_that_is_pulled_away_ends_the_recording_where_it_was_acknowledged() {
    let test = "filesystems::ext4_that_is_pulled_away_ends_the_recording_where_it_was_acknowledged";
    on(Kind::Ext4, test, || {
        let mounted = Mounted::new(Kind::Ext4, "pulled-away");
        let mut archive = archive_on(&mounted.directory, "1");
        let (mut publication, recording_id) = archive.record(STREAM);
        archive.run_until(|_| publication.offer(&MESSAGE).ok());
        let recorded = archive.recorded_position(recording_id);
        let end = publication.position();
        archive.run_until(|_| (recorded.get() == end).then_some(()));
        mounted.pull_away();
        let (mut highest, mut reason) = (end, None);
        archive.run_until(|archive| {
            let _ = publication.offer(&MESSAGE);
            highest = highest.max(recorded.get());
            match archive.connection().next_event() {
                Some(ArchiveEvent::Error(error)) => reason = Some(error.message),
                Some(ArchiveEvent::Signal(signal)) if signal.signal == RecordingSignal::STOP => {
                    return Some(());
                }
                _ => {}
            }
            None
        });
        let reason = reason.expect("the client is told why");
        assert!(reason.contains(mounted.path()), "{reason}");
        let call = archive.connection().list_recording(recording_id);
        let found = archive.wait(call).expect("there is a recording");
        assert_eq!(found.stop_position, Some(highest));
        assert_eq!(archive.failure(), None);
    });
}
