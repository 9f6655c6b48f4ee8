// SPDX-License-Identifier: Apache-2.0
//! Group commit and direct I/O.

#![cfg(not(loom))]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use taran_storage::conformance::FailingDisk;
use taran_storage::{
    ALIGNMENT, AlignedBuf, Disk, DiskQueue, ErrorKind, InlineQueue, OpenOptions, OsDisk, Request,
    SyncKind, ThreadedQueue, ThreadedQueueOptions,
};

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("taran-storage-{name}-{}", std::process::id()))
}

#[test]
fn syncs_submitted_together_are_served_by_one_per_file() {
    let failing = FailingDisk::new(Arc::new(OsDisk));
    let failures = failing.failures();
    let disk: Arc<dyn Disk> = Arc::new(failing);
    let mut queue = InlineQueue::new(&disk, 1, 64, ());
    let paths = [path("group-0"), path("group-1")];
    let files = paths.each_ref().map(|path| {
        let file = disk.open(path, OpenOptions::create_new()).unwrap();
        queue.attach(file)
    });
    for token in 0..10 {
        for file in &files {
            let write = Request::Write {
                file: file.clone(),
                offset: token * 512,
                buffer: AlignedBuf::new(512),
                range: 0..512,
            };
            queue.submit(token, write).unwrap();
            let (file, kind) = (file.clone(), SyncKind::Data);
            queue
                .submit(100 + token, Request::Sync { file, kind })
                .unwrap();
        }
    }
    let mut synced = 0;
    while let Some(completion) = queue.poll(0) {
        completion.result.unwrap();
        synced += usize::from(completion.token >= 100);
    }
    assert_eq!(
        (20, 2),
        (synced, failures.syncs_executed.load(Ordering::SeqCst))
    );
    for path in &paths {
        disk.remove_file(path).unwrap();
    }
}

#[test]
fn direct_file_takes_aligned_blocks_and_refuses_others() {
    let path = path("direct");
    let options = OpenOptions::create_new().with_direct();
    let file = match OsDisk.open(&path, options) {
        Ok(file) => file,
        Err(error) if error.kind == ErrorKind::Unsupported => {
            eprintln!("skipped: {} has no direct I/O", path.display());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut buffer = AlignedBuf::new(4 * ALIGNMENT);
    buffer.fill(7);
    file.write_at(&buffer, ALIGNMENT as u64).unwrap();
    file.sync(SyncKind::Data).unwrap();
    let mut back = AlignedBuf::new(8 * ALIGNMENT);
    assert_eq!(5 * ALIGNMENT, file.read_at(&mut back, 0).unwrap());
    assert!(back[..ALIGNMENT].iter().all(|byte| *byte == 0));
    assert_eq!(buffer[..], back[ALIGNMENT..5 * ALIGNMENT]);
    for (range, offset) in [(0..ALIGNMENT, 1), (0..100, 0), (1..ALIGNMENT + 1, 0)] {
        let error = file.write_at(&buffer[range], offset).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::Misaligned { .. }),
            "{error}"
        );
    }
    OsDisk.remove_file(&path).unwrap();
}

#[test]
fn queue_with_a_device_that_does_not_answer_is_dropped_after_its_close_timeout() {
    let failing = FailingDisk::new(Arc::new(OsDisk));
    let failures = failing.failures();
    let disk: Arc<dyn Disk> = Arc::new(failing);
    let mut options = ThreadedQueueOptions::default();
    options.workers = 2;
    options.close_timeout = Duration::from_millis(1);
    let mut queue = ThreadedQueue::start(&disk, &options).unwrap();
    let gate = failures.gate.lock().unwrap();
    let path = std::env::temp_dir();
    queue.submit(1, Request::Metadata { path }).unwrap();
    // Without the timeout, this waits for the gate for ever.
    drop(queue);
    drop(gate);
}
