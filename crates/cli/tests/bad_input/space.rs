//! Too small a `/dev/shm`: 64 MiB, as a container gets it unless somebody asks for more, and less.

use std::path::{Path, PathBuf};

use taran::ErrorCode;
use taran_protocol::counter::SystemCounter;

use crate::attach::{connect, wait_until};
use crate::mounts::{in_own_mounts, mount_memory};
use crate::process::{Driver, run, taran};
use crate::texts::{assert_refused, assert_says};

fn directory() -> PathBuf {
    PathBuf::from("/dev/shm/driver")
}

fn files(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(files(&path));
        } else {
            names.push(path.display().to_string());
        }
    }
    names
}

#[test]
fn no_room_for_a_driver() {
    in_own_mounts("space::no_room_for_a_driver", || {
        // Not enough for cnc.dat, and just enough for that and not for the rest.
        for size in ["8m", "47m"] {
            mount_memory("/dev/shm", &format!("size={size}"));
            let outcome = run(taran(&["driver"]).env("AERON_DIR", directory()));
            outcome.assert_code(1).assert_stderr("ERROR: driver init: ");
            assert_says(
                &outcome.stderr,
                &[
                    "/dev/shm/driver",
                    "needed=49287168",
                    "available=",
                    &format!("is {size}"),
                    "--shm-size=48m",
                    "mount -o remount,size=48m",
                    "aeron.counters.buffer.length=8388608",
                    "aeron.dir",
                ],
            );
            assert!(!outcome.stderr.contains("term"), "{outcome:?}");
            assert_eq!(files(Path::new("/dev/shm")), [""; 0], "nothing is left");
        }
        // What the text says is enough, is enough.
        mount_memory("/dev/shm", "size=48m");
        Driver::start(&directory(), &[])
            .stop("TERM")
            .assert_code(15)
            .assert_silent();
        mount_memory("/dev/shm", "size=13m");
        Driver::start(&directory(), &["aeron.counters.buffer.length=1m"])
            .stop("TERM")
            .assert_code(15)
            .assert_silent();
    });
}

#[test]
fn no_room_for_a_log() {
    in_own_mounts("space::no_room_for_a_log", || {
        mount_memory("/dev/shm", "size=64m");
        let driver = Driver::start(&directory(), &[]);
        let client = connect(&directory());
        let before = files(&directory());
        for (channel, needed, size) in [
            ("aeron:udp?endpoint=localhost:40123", "50335744", "96m"),
            ("aeron:ipc", "201330688", "240m"),
        ] {
            let says = [
                "insufficient usable storage",
                &format!("needed={needed}"),
                "available=",
                "is 64m",
                &format!("--shm-size={size}"),
                &format!("mount -o remount,size={size}"),
                "/dev/shm/driver/publications",
                "term-length",
            ];
            let added = client.add_publication(channel, 10);
            assert_refused(added, ErrorCode::StorageSpace, &says);
            let added = client.add_exclusive_publication(channel, 10);
            assert_refused(added, ErrorCode::StorageSpace, &says);
        }
        assert_eq!(files(&directory()), before, "nothing is left");
        let errors = run(taran(&["errors"]).env("AERON_DIR", directory()));
        errors.assert_code(0);
        assert_says(
            &errors.stdout,
            &["insufficient usable storage", "--shm-size=96m"],
        );

        // Doing what the text says helps.
        let channel = "aeron:ipc?term-length=1m";
        let mut subscription = client.add_subscription(channel, 10).unwrap();
        let publication = client.add_publication(channel, 10).unwrap();
        wait_until("connected", || publication.offer(b"fits").is_ok());
        wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}

#[test]
fn no_room_for_the_log_of_an_image() {
    in_own_mounts("space::no_room_for_the_log_of_an_image", || {
        mount_memory("/dev/shm", "size=64m");
        let driver = Driver::start(&directory(), &[]);
        let client = connect(&directory());
        // Its publisher has room for this one, its subscriber has none.
        let channel = "aeron:udp?endpoint=localhost:40123|term-length=4m";
        let subscription = client.add_subscription(channel, 10).unwrap();
        let publication = client.add_publication(channel, 10).unwrap();
        let errors = || client.counters().value(SystemCounter::Errors.id());
        // Each SETUP asks again.
        wait_until("refused more than once", || errors() > Some(2));
        assert_eq!(
            (subscription.image_count(), publication.is_connected()),
            (0, false)
        );
        let shown = run(taran(&["errors"]).env("AERON_DIR", directory()));
        shown.assert_code(0);
        assert_says(
            &shown.stdout,
            &[
                "insufficient usable storage",
                "needed=12587008",
                "/dev/shm/driver/images",
                "--shm-size=",
                "2 distinct errors",
            ],
        );
        driver.stop("TERM").assert_code(15).assert_silent();
    });
}
