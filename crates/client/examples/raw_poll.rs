// SPDX-License-Identifier: Apache-2.0
//! Recording of a stream by raw polls, which let the kernel copy from the log file.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use taran::{Client, ClientBuilder, RawBlock};

use self::limit::Limit;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();
    let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    let publication = client.add_publication("aeron:ipc", 1001)?;
    while !publication.is_connected() || subscription.has_no_images() {
        limit.wait_for("the image")?;
    }
    for number in 0..100_u8 {
        publication.offer(&[number; 100])?;
    }

    let path = std::env::temp_dir().join(format!("taran-recording-{}", std::process::id()));
    let mut recording = File::create(&path)?;
    let mut outcome = Ok(());
    let mut recorded = 0;
    while recorded < publication.position() {
        recorded += subscription.raw_poll(
            |block| {
                if outcome.is_ok() {
                    outcome = record(block, &mut recording);
                }
            },
            64 * 1024,
        )? as i64;
        limit.wait_for("the end of the stream")?;
    }
    outcome?;
    let length = recording.metadata()?.len();
    println!("{length} bytes of frames in {}", path.display());
    std::fs::remove_file(path)?;
    Ok(())
}

/// Copies a block. `io::copy` between two files uses `copy_file_range` or `sendfile` where available.
fn record(block: &RawBlock<'_>, recording: &mut File) -> io::Result<()> {
    let Some(mut log) = block.file().as_file() else {
        return Err(io::Error::other("the log is in memory only"));
    };
    log.seek(SeekFrom::Start(block.file_offset()))?;
    let copied = io::copy(&mut log.take(block.length() as u64), recording)?;
    assert_eq!(copied, block.length() as u64);
    Ok(())
}
