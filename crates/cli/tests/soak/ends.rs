//! The two ends of a stream: who writes, and who reads what of it.

use std::path::PathBuf;

use taran::{Client, FragmentAssembler, Header, Publication, Subscription};

use crate::message::{LENGTHS, message, number_of};
use crate::tally::Tally;
use crate::waiting::{Trouble, again, await_all, connect, text};

/// Who writes.
pub(crate) struct Writing {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    destinations: Vec<String>,
}

/// What of a stream a reader has to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Every message.
    All,
    /// What the cable does not lose: nothing is sent again.
    WhatArrives,
    /// It stands still after the first few, and nobody waits for it: whatever it finds at the end.
    AFew,
}

/// So many messages are a few.
const A_FEW: u64 = 100;

/// Who reads.
pub(crate) struct Reading {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    sources: Vec<String>,
    due: Due,
    lengths: &'static [usize],
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

    /// A client with the publication.
    pub(crate) fn begin(&self, stream: i32) -> Result<(Client, Publication), String> {
        let client = connect(&self.directory)?;
        let publication = again(|| client.add_publication(&self.channel, stream))?;
        for destination in &self.destinations {
            again(|| publication.add_destination(destination))?;
        }
        Ok((client, publication))
    }
}

impl Reading {
    pub(crate) fn new(directory: PathBuf, channel: &str) -> Reading {
        Reading {
            directory,
            channel: channel.to_owned(),
            sources: Vec::new(),
            due: Due::All,
            lengths: LENGTHS,
        }
    }

    pub(crate) fn source(mut self, channel: &str) -> Reading {
        self.sources.push(channel.to_owned());
        self
    }

    pub(crate) fn due(self, due: Due) -> Reading {
        Reading { due, ..self }
    }

    pub(crate) fn may_lose(&self) -> bool {
        self.due == Due::WhatArrives
    }

    pub(crate) fn lengths(self, lengths: &'static [usize]) -> Reading {
        Reading { lengths, ..self }
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
            due: self.due,
            lengths: self.lengths,
            next: 0,
            received: 0,
            bytes: 0,
        })
    }
}

/// A client that reads.
pub(crate) struct Reader {
    pub(crate) subscription: Subscription,
    _client: Client,
    assembler: FragmentAssembler,
    due: Due,
    lengths: &'static [usize],
    next: u64,
    received: u64,
    bytes: u64,
}

impl Reader {
    pub(crate) fn has_image(&self, session_id: i32) -> bool {
        self.subscription.image(session_id).is_some()
    }

    /// Takes what is there while the stream flows, unless it is one that stands still.
    pub(crate) fn follow(&mut self) -> Result<(), Trouble> {
        if self.due == Due::AFew && self.received >= A_FEW {
            return Ok(());
        }
        self.take()
    }

    /// Each message has to be the next one, or one after it where some may be missing, and each of its bytes right.
    /// (Of who stands still the image ends, and another begins somewhere: what is then held of a message is its bytes.)
    fn take(&mut self) -> Result<(), Trouble> {
        let (due, lengths) = (self.due, self.lengths);
        let (next, received, bytes) = (&mut self.next, &mut self.received, &mut self.bytes);
        let mut wrong = None;
        let handler = |taken: &[u8], _: &Header<'_>| {
            let number = match due {
                Due::All => (taken == message(lengths, *next)).then_some(*next),
                Due::WhatArrives | Due::AFew => number_of(taken, lengths, *next),
            };
            if let Some(number) = number {
                *next = number + 1;
                *received += 1;
                *bytes += taken.len() as u64;
            } else {
                let length = taken.len();
                wrong.get_or_insert(match number_of(taken, lengths, *next) {
                    // The image may have been given up, and another one begun.
                    Some(later) => Trouble::Failed(format!("message {later} after {next} - 1")),
                    None => Trouble::Wrong(format!("{length} bytes that are not message {next}")),
                });
            }
        };
        self.subscription
            .poll(self.assembler.wrap(handler), 64)
            .map_err(text)?;
        wrong.map_or(Ok(()), Err)
    }

    /// Whether it has what it is waited for, of so many messages.
    pub(crate) fn has_all(&self, written: u64) -> bool {
        match self.due {
            Due::All => self.received >= written,
            Due::WhatArrives => true,
            Due::AFew => self.received >= A_FEW.min(written),
        }
    }

    /// Takes what comes until the stream has ended: of so many messages what is due, and nothing more.
    pub(crate) fn end(&mut self, written: u64) -> Result<(), Trouble> {
        await_all("the end of the stream", || {
            self.take()?;
            Ok(self.subscription.has_no_images())
        })?;
        let least = match self.due {
            Due::All => written,
            // Of a hundred datagrams one is lost, of messages with several frames a few.
            Due::WhatArrives => written / 2,
            Due::AFew => A_FEW.min(written),
        };
        let said = format!(
            "{} messages of {written}, due was {:?}",
            self.received, self.due
        );
        if self.received > written {
            Err(Trouble::Wrong(said))
        } else if self.received < least {
            Err(Trouble::Failed(said))
        } else {
            Ok(())
        }
    }

    /// What was received goes into the books, and what is missing of so many.
    pub(crate) fn account(&self, flow: &'static str, written: u64, tally: &Tally) {
        tally.received(flow, self.received, self.bytes);
        tally.missed(flow, written - self.received);
    }

    /// How many messages it has.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }
}
