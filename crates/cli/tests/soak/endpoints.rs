// SPDX-License-Identifier: Apache-2.0
//! The publishing and the subscribing side of a flow.

use std::path::PathBuf;

use taran::{Client, FragmentAssembler, Header, Publication, Subscription};

use crate::message::{LENGTHS, message, number_of};
use crate::tally::Tally;
use crate::waiting::{RoundError, await_all, connect, retry, text};

/// Specification of a publication.
pub(crate) struct PublicationSpec {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    destinations: Vec<String>,
}

/// Messages that a subscriber has to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Every message.
    All,
    /// Those that the link does not lose: nothing is retransmitted.
    Lossy,
    /// At least the first few: it stops consuming, and the publisher does not wait for it.
    First,
}

/// Number of messages after which such a subscriber stops.
const FIRST_MESSAGES: u64 = 100;

/// Specification of a subscription.
pub(crate) struct SubscriptionSpec {
    pub(crate) directory: PathBuf,
    pub(crate) channel: String,
    sources: Vec<String>,
    expected: Expected,
    lengths: &'static [usize],
}

impl PublicationSpec {
    pub(crate) fn new(directory: PathBuf, channel: &str) -> PublicationSpec {
        PublicationSpec {
            directory,
            channel: channel.to_owned(),
            destinations: Vec::new(),
        }
    }

    pub(crate) fn destination(mut self, channel: &str) -> PublicationSpec {
        self.destinations.push(channel.to_owned());
        self
    }

    /// Connects a client and adds the publication.
    pub(crate) fn begin(&self, stream: i32) -> Result<(Client, Publication), String> {
        let client = connect(&self.directory)?;
        let publication = retry(|| client.add_publication(&self.channel, stream))?;
        for destination in &self.destinations {
            retry(|| publication.add_destination(destination))?;
        }
        Ok((client, publication))
    }
}

impl SubscriptionSpec {
    pub(crate) fn new(directory: PathBuf, channel: &str) -> SubscriptionSpec {
        SubscriptionSpec {
            directory,
            channel: channel.to_owned(),
            sources: Vec::new(),
            expected: Expected::All,
            lengths: LENGTHS,
        }
    }

    pub(crate) fn source(mut self, channel: &str) -> SubscriptionSpec {
        self.sources.push(channel.to_owned());
        self
    }

    pub(crate) fn expected(self, expected: Expected) -> SubscriptionSpec {
        SubscriptionSpec { expected, ..self }
    }

    pub(crate) fn may_lose(&self) -> bool {
        self.expected == Expected::Lossy
    }

    pub(crate) fn lengths(self, lengths: &'static [usize]) -> SubscriptionSpec {
        SubscriptionSpec { lengths, ..self }
    }

    pub(crate) fn begin(&self, stream: i32) -> Result<Reader, String> {
        let client = connect(&self.directory)?;
        let subscription = retry(|| client.add_subscription(&self.channel, stream))?;
        for source in &self.sources {
            retry(|| subscription.add_destination(source))?;
        }
        Ok(Reader {
            subscription,
            _client: client,
            assembler: FragmentAssembler::new(),
            expected: self.expected,
            lengths: self.lengths,
            next: 0,
            received: 0,
            bytes: 0,
        })
    }
}

/// A client with a subscription.
pub(crate) struct Reader {
    pub(crate) subscription: Subscription,
    _client: Client,
    assembler: FragmentAssembler,
    expected: Expected,
    lengths: &'static [usize],
    next: u64,
    received: u64,
    bytes: u64,
}

impl Reader {
    pub(crate) fn has_image(&self, session_id: i32) -> bool {
        self.subscription.image(session_id).is_some()
    }

    /// Polls while the stream is active, unless the subscriber has stopped consuming.
    pub(crate) fn poll(&mut self) -> Result<(), RoundError> {
        if self.expected == Expected::First && self.received >= FIRST_MESSAGES {
            return Ok(());
        }
        self.poll_and_check()
    }

    /// Checks each message: it has to be the expected one, or a later one if messages may be missing, and every byte
    /// has to be right. (The image of a stopped subscriber ends, and a later one starts at any position.)
    fn poll_and_check(&mut self) -> Result<(), RoundError> {
        let (expected, lengths) = (self.expected, self.lengths);
        let (next, received, bytes) = (&mut self.next, &mut self.received, &mut self.bytes);
        let mut wrong = None;
        let handler = |taken: &[u8], _: &Header<'_>| {
            let number = match expected {
                Expected::All => (taken == message(lengths, *next)).then_some(*next),
                Expected::Lossy | Expected::First => number_of(taken, lengths, *next),
            };
            if let Some(number) = number {
                *next = number + 1;
                *received += 1;
                *bytes += taken.len() as u64;
            } else {
                let length = taken.len();
                wrong.get_or_insert(match number_of(taken, lengths, *next) {
                    // The image may have timed out, and another one started.
                    Some(later) => RoundError::Failed(format!("message {later} after {next} - 1")),
                    None => {
                        RoundError::Wrong(format!("{length} bytes that are not message {next}"))
                    }
                });
            }
        };
        self.subscription
            .poll(self.assembler.wrap(handler), 64)
            .map_err(text)?;
        wrong.map_or(Ok(()), Err)
    }

    /// Returns true if the expected messages, of `written` ones, have been received.
    pub(crate) fn has_all(&self, written: u64) -> bool {
        match self.expected {
            Expected::All => self.received >= written,
            Expected::Lossy => true,
            Expected::First => self.received >= FIRST_MESSAGES.min(written),
        }
    }

    /// Polls until the stream has ended, and checks the number of received messages.
    pub(crate) fn end(&mut self, written: u64) -> Result<(), RoundError> {
        await_all("the end of the stream", || {
            self.poll_and_check()?;
            Ok(self.subscription.has_no_images())
        })?;
        let least = match self.expected {
            Expected::All => written,
            // One datagram in a hundred is lost; more of the messages with several frames.
            Expected::Lossy => written / 2,
            Expected::First => FIRST_MESSAGES.min(written),
        };
        let said = format!(
            "{} messages of {written}, expected {:?}",
            self.received, self.expected
        );
        if self.received > written {
            Err(RoundError::Wrong(said))
        } else if self.received < least {
            Err(RoundError::Failed(said))
        } else {
            Ok(())
        }
    }

    /// Adds the received and the missing messages to the tally.
    pub(crate) fn account(&self, flow: &'static str, written: u64, tally: &Tally) {
        tally.received(flow, self.received, self.bytes);
        tally.missed(flow, written - self.received);
    }

    /// Returns the number of received messages.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }
}
