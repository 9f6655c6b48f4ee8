// SPDX-License-Identifier: Apache-2.0
//! Asks an archive from an asynchronous task. Needs a driver and an archive in the default directory. Any runtime will do.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use taran_archive_client::{ArchiveContext, AsyncArchive};

/// Prints the recordings of an archive; returns their number.
pub(crate) async fn list(archive: &AsyncArchive) -> Result<usize, Box<dyn std::error::Error>> {
    let (mut next, mut count) = (0, 0);
    loop {
        let page = archive.list_recordings(next, 100).await?;
        let Some(last) = page.last() else {
            return Ok(count);
        };
        next = last.recording_id + 1;
        count += page.len();
        for recording in page {
            let end = archive
                .max_recorded_position(recording.recording_id)
                .await?;
            println!(
                "{}: {} up to {end}",
                recording.recording_id, recording.original_channel
            );
        }
    }
}

/// Wakes the thread that waits for a future.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The shortest runtime there is.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = taran::Client::builder().connect()?;
    let context = ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc");
    let archive = AsyncArchive::start(context.connect(&client)?.into_connection())?;
    block_on(list(&archive))?;
    Ok(())
}
