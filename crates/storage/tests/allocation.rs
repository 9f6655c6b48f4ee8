// SPDX-License-Identifier: Apache-2.0
//! A queued request allocates nothing after set-up, on the owner's thread and on those of the queue.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use taran_storage::{
    Advice, AlignedBuf, Disk, DiskQueue, InlineQueue, OpenOptions, OsDisk, QueuedFile, Request,
    SyncKind, ThreadedQueue, ThreadedQueueOptions, WritePart,
};

// Of all threads: this file has one test, and the harness waits for it.
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's guarantees are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Buffers that a round moves into the queue and gets back.
struct Buffers {
    one: AlignedBuf,
    parts: Vec<WritePart>,
}

/// Executes one request of each kind that an agent repeats.
fn round(queue: &mut dyn DiskQueue, file: &QueuedFile, buffers: Buffers) -> Buffers {
    let mut buffers = Some(buffers);
    for step in 0..7 {
        let file = file.clone();
        let request = match step {
            0 | 1 => {
                let buffer = std::mem::take(&mut buffers.as_mut().unwrap().one);
                let (offset, range) = (0, 0..4096);
                if step == 0 {
                    Request::Write {
                        file,
                        offset,
                        buffer,
                        range,
                    }
                } else {
                    Request::Read {
                        file,
                        offset,
                        buffer,
                        range,
                    }
                }
            }
            2 => {
                let parts = std::mem::take(&mut buffers.as_mut().unwrap().parts);
                Request::WriteVectored {
                    file,
                    offset: 4096,
                    parts,
                }
            }
            3 => Request::Sync {
                file,
                kind: SyncKind::Data,
            },
            4 => Request::SetLength { file, len: 65_536 },
            5 => Request::Advise {
                file,
                offset: 0,
                len: 0,
                advice: Advice::WriteBack,
            },
            _ => Request::ClearFailure { file },
        };
        queue.submit(step, request).unwrap();
        let completion = loop {
            match queue.poll(0) {
                Some(completion) => break completion,
                None => std::thread::yield_now(),
            }
        };
        completion.result.unwrap();
        let held = buffers.as_mut().unwrap();
        if let Some(buffer) = completion.buffer {
            held.one = buffer;
        }
        if !completion.parts.is_empty() {
            held.parts = completion.parts;
        }
    }
    buffers.unwrap()
}

fn allocations_of(queue: &mut dyn DiskQueue, disk: &dyn Disk, name: &str) -> usize {
    let name = format!("taran-storage-allocation-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = queue.attach(disk.open(&path, OpenOptions::create_new()).unwrap());
    let part = || WritePart::new(AlignedBuf::new(4096), 0..1000);
    let mut buffers = Buffers {
        one: AlignedBuf::new(4096),
        parts: vec![part(), part(), part()],
    };
    for _ in 0..20 {
        buffers = round(queue, &file, buffers);
    }
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    assert!(before > 0, "set-up allocates, and that is counted");
    for _ in 0..100 {
        buffers = round(queue, &file, buffers);
    }
    let allocated = ALLOCATIONS.load(Ordering::SeqCst) - before;
    disk.remove_file(&path).unwrap();
    allocated
}

#[test]
fn requests_of_both_queues_allocate_nothing() {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let mut inline = InlineQueue::new(&disk, 2, 16, ());
    assert_eq!(0, allocations_of(&mut inline, &*disk, "inline"));
    let mut threaded = ThreadedQueue::start(&disk, &ThreadedQueueOptions::default()).unwrap();
    assert_eq!(0, allocations_of(&mut threaded, &*disk, "threaded"));
}
