//! A round of a stream between our clients, on whichever drivers: they come, they write and read, they go.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{
    AddError, Client, ClientEnd, Context, ErrorCode, FragmentAssembler, Lost, Publication,
    Subscription,
};

use crate::tally::Tally;

/// How long a round writes.
const ROUND: Duration = Duration::from_secs(10);

/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at everything.
const STEP: Duration = Duration::from_millis(1);

/// Messages are offered so many at a time.
const BURST: u64 = 2;

/// Lengths of messages, in turn. The longest takes several frames.
pub(crate) const LENGTHS: [usize; 5] = [64, 300, 1_000, 17, 5_000];

/// Clients that had no time to show that they live.
static STARVED: AtomicU64 = AtomicU64::new(0);

/// How many clients have ended because the machine gave them no time for longer than the driver waits.
pub(crate) fn starved_clients() -> u64 {
    STARVED.load(Ordering::Relaxed)
}

/// Who writes.
pub(crate) struct Writing {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    destinations: Vec<String>,
}

/// Who reads.
pub(crate) struct Reading {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    sources: Vec<String>,
}

impl Writing {
    pub(crate) fn new(directory: PathBuf, channel: &str) -> Writing {
        Writing {
            directory,
            channel: channel.to_owned(),
            destinations: Vec::new(),
        }
    }

    pub(crate) fn destination(mut self, channel: &str) -> Writing {
        self.destinations.push(channel.to_owned());
        self
    }
}

impl Reading {
    pub(crate) fn new(directory: PathBuf, channel: &str) -> Reading {
        Reading {
            directory,
            channel: channel.to_owned(),
            sources: Vec::new(),
        }
    }

    pub(crate) fn source(mut self, channel: &str) -> Reading {
        self.sources.push(channel.to_owned());
        self
    }

    pub(crate) fn begin(&self, stream: i32) -> Result<Reader, String> {
        let client = connect(&self.directory)?;
        let subscription = again(|| client.add_subscription(&self.channel, stream))?;
        for source in &self.sources {
            again(|| subscription.add_destination(source))?;
        }
        Ok(Reader {
            subscription,
            _client: client,
            assembler: FragmentAssembler::new(),
            next: 0,
            bytes: 0,
        })
    }
}

/// A client that reads.
pub(crate) struct Reader {
    subscription: Subscription,
    _client: Client,
    assembler: FragmentAssembler,
    pub(crate) next: u64,
    bytes: u64,
}

impl Reader {
    pub(crate) fn has_image(&self, session_id: i32) -> bool {
        self.subscription.image(session_id).is_some()
    }

    /// Takes what is there; each message has to be the next one, and each of its bytes the right one.
    pub(crate) fn take(&mut self) -> Result<(), String> {
        let (next, bytes) = (&mut self.next, &mut self.bytes);
        let mut wrong = None;
        let handler = |message: &[u8], _: &taran::Header<'_>| {
            if wrong.is_none() && message != self::message(*next) {
                wrong = Some(format!(
                    "{} bytes that are not message {next}",
                    message.len()
                ));
            }
            *next += 1;
            *bytes += message.len() as u64;
        };
        self.subscription
            .poll(self.assembler.wrap(handler), 64)
            .map_err(text)?;
        wrong.map_or(Ok(()), Err)
    }

    /// Takes what comes until the stream has ended: nothing more than these messages.
    pub(crate) fn end(&mut self, messages: u64) -> Result<(), String> {
        await_all("the end of the stream", || {
            self.take()?;
            Ok(self.subscription.has_no_images())
        })?;
        if self.next == messages {
            Ok(())
        } else {
            Err(format!("{} messages of {messages}", self.next))
        }
    }

    /// What was received goes into the books.
    pub(crate) fn account(&self, flow: &'static str, tally: &Tally) {
        tally.received(flow, self.next, self.bytes);
    }
}

/// Message `number`, as the official clients of the interop project have it.
pub(crate) fn message(number: u64) -> Vec<u8> {
    let length = LENGTHS[(number % LENGTHS.len() as u64) as usize];
    let byte = |index: usize| (number.wrapping_mul(31)).wrapping_add(index as u64 * 7) as u8;
    (0..length).map(byte).collect()
}

/// One round: `stream` is that of the flow.
pub(crate) fn round(
    flow: &'static str,
    stream: i32,
    writing: &Writing,
    reading: &[Reading],
    tally: &Tally,
) -> Result<(), String> {
    let mut readers = Vec::new();
    for one in reading {
        readers.push(one.begin(stream)?);
    }
    let client = connect(&writing.directory)?;
    let publication = again(|| client.add_publication(&writing.channel, stream))?;
    for destination in &writing.destinations {
        again(|| publication.add_destination(destination))?;
    }
    let session_id = publication.session_id();
    await_all("all receive the stream", || {
        Ok(publication.is_connected() && readers.iter().all(|reader| reader.has_image(session_id)))
    })?;
    let (until, mut written) = (Instant::now() + ROUND, 0);
    while Instant::now() < until {
        written += offer(&publication, written, BURST)?;
        for reader in &mut readers {
            reader.take()?;
        }
        thread::sleep(STEP);
    }
    await_all("all have all", || {
        for reader in &mut readers {
            reader.take()?;
        }
        Ok(readers.iter().all(|reader| reader.next >= written))
    })
    .map_err(|why| {
        let have: Vec<u64> = readers.iter().map(|reader| reader.next).collect();
        format!("{why}: {have:?} of {written}")
    })?;
    drop(publication);
    for reader in &mut readers {
        reader.end(written)?;
        reader.account(flow, tally);
    }
    Ok(())
}

/// Offers so many messages at most, from `number` on: how many were taken.
pub(crate) fn offer(publication: &Publication, number: u64, most: u64) -> Result<u64, String> {
    for taken in 0..most {
        match publication.offer(&message(number + taken)) {
            Ok(_) => {}
            Err(error) if error.is_retryable() => return Ok(taken),
            Err(error) => return Err(format!("message {}: {error}", number + taken)),
        }
    }
    Ok(most)
}

/// Asks, and asks again as long as what was closed a moment ago is about to go.
pub(crate) fn again<T>(mut ask: impl FnMut() -> Result<T, AddError>) -> Result<T, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Err(AddError::Registration(refused))
                if refused.code == ErrorCode::ResourceTemporarilyUnavailable
                    && Instant::now() < deadline =>
            {
                thread::sleep(STEP);
            }
            other => return other.map_err(text),
        }
    }
}

/// A client of the driver in a directory.
pub(crate) fn connect(directory: &Path) -> Result<Client, String> {
    let context = Context::new().aeron_dir(directory);
    let context = context.on_close(|end| {
        if let ClientEnd::Lost(Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. }) = end {
            STARVED.fetch_add(1, Ordering::Relaxed);
        }
    });
    context.connect().map_err(text)
}

/// Waits, with patience.
pub(crate) fn await_all(
    what: &str,
    mut is_so: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(format!("waited in vain: {what}"));
        }
        thread::sleep(STEP);
    }
    Ok(())
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
