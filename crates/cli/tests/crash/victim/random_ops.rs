// SPDX-License-Identifier: Apache-2.0
//! Random client operations until the process is killed.

use std::time::{Duration, Instant};

use taran::{
    Client, Counter, ExclusivePublication, FragmentAssembler, OfferError, PollError, Position,
    Publication, Subscription,
};

use super::{VictimError, VictimSpec};
use crate::fixture::{PORT, Stream, connect, own_port};
use crate::message::{HEADER_LENGTH, Producer, Received};

/// Maximum duration if the process is not killed.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum number of handles of a kind that are held at the same time.
const HANDLES: usize = 4;
/// Maximum message length: many fragments, and less than the window of the shortest term.
const LONGEST_MESSAGE: usize = 7_000;
/// Streams used by victims only.
const PRIVATE_STREAM: i32 = 5_000;

/// Performs random operations for as long as a victim may live.
pub(super) fn run_random_ops(spec: &VictimSpec, client: Client) -> Result<(), VictimError> {
    let end = Instant::now() + LONGEST;
    let mut random_client = RandomClient {
        random: spec.random(),
        streams: spec.shared_streams(),
        spec,
        client,
        handles: 0,
        sockets: 0,
        shared: Vec::new(),
        exclusive: Vec::new(),
        subscriptions: Vec::new(),
        counters: Vec::new(),
    };
    while Instant::now() < end {
        random_client.random_op()?;
    }
    Ok(())
}

struct RandomClient<'o> {
    spec: &'o VictimSpec,
    random: fastrand::Rng,
    streams: Vec<Stream>,
    client: Client,
    handles: u64,
    sockets: u64,
    shared: Vec<(Publication, Producer)>,
    exclusive: Vec<(ExclusivePublication, Producer)>,
    subscriptions: Vec<Reader>,
    counters: Vec<Counter>,
}

struct Reader {
    subscription: Subscription,
    assembler: FragmentAssembler,
    received: Received,
}

impl RandomClient<'_> {
    fn random_op(&mut self) -> Result<(), VictimError> {
        match self.random.u32(..100) {
            0..8 => self.add_shared(),
            8..16 => self.add_exclusive(),
            16..20 => self.add_subscription(),
            20..24 => self.add_counter(),
            24..28 => self.send_to_destinations(),
            28..32 => self.receive_from_sources(),
            32..60 => self.offer(),
            60..76 => self.claim(),
            76..88 => self.poll(),
            88..99 => {
                self.close_something();
                Ok(())
            }
            _ => self.reconnect(),
        }
    }

    /// Returns a stream of the surviving clients or a private one.
    fn any_stream(&mut self) -> Stream {
        let mut stream = self.streams[self.random.usize(..self.streams.len())].clone();
        if self.random.u32(..3) > 0 {
            stream.id = PRIVATE_STREAM + self.random.i32(..4);
        }
        stream
    }

    fn producer(&mut self) -> Producer {
        self.handles += 1;
        Producer::new(self.spec.producer(self.handles))
    }

    fn add_shared(&mut self) -> Result<(), VictimError> {
        let stream = self.any_stream();
        let publication = self.client.add_publication(&stream.channel, stream.id)?;
        let producer = self.producer();
        self.shared.push((publication, producer));
        Ok(())
    }

    fn add_exclusive(&mut self) -> Result<(), VictimError> {
        let stream = self.any_stream();
        let added = self
            .client
            .add_exclusive_publication(&stream.channel, stream.id)?;
        let producer = self.producer();
        self.exclusive.push((added, producer));
        Ok(())
    }

    fn add_subscription(&mut self) -> Result<(), VictimError> {
        let stream = self.any_stream();
        // A tethered subscription of a killed client holds the stream back until the driver detects the death.
        let tether = if self.random.u32(..16) == 0 {
            ""
        } else {
            "|tether=false"
        };
        let channel = stream.channel + tether;
        let subscription = self.client.add_subscription(&channel, stream.id)?;
        self.subscriptions.push(Reader {
            subscription,
            assembler: FragmentAssembler::new(),
            received: Received::with_gaps(),
        });
        Ok(())
    }

    fn add_counter(&mut self) -> Result<(), VictimError> {
        let counter = self.client.add_counter(2_000, b"victim", "victim")?;
        counter.set(self.random.i64(..));
        self.counters.push(counter);
        Ok(())
    }

    /// Adds a publication and changes its destinations.
    fn send_to_destinations(&mut self) -> Result<(), VictimError> {
        let publication = self.client.add_exclusive_publication(
            "aeron:udp?control-mode=manual|term-length=64k",
            PRIVATE_STREAM,
        )?;
        let destinations = [PORT, PORT + 1, PORT + 2]
            .map(|port| format!("aeron:udp?endpoint={}:{port}", self.spec.address));
        for destination in &destinations {
            publication.add_destination(destination)?;
        }
        publication.remove_destination(&destinations[self.random.usize(..3)])?;
        let producer = self.producer();
        self.exclusive.push((publication, producer));
        Ok(())
    }

    /// Adds a subscription and changes its source channels.
    fn receive_from_sources(&mut self) -> Result<(), VictimError> {
        let subscription = self
            .client
            .add_subscription("aeron:udp?control-mode=manual", PRIVATE_STREAM)?;
        // A port that no other process uses.
        self.sockets += 1;
        let port = own_port(self.spec.number, self.sockets);
        let sources = [
            "aeron:ipc".to_owned(),
            format!("aeron:udp?endpoint={}:{port}", self.spec.address),
        ];
        for source in &sources {
            subscription.add_destination(source)?;
        }
        subscription.remove_destination(&sources[self.random.usize(..2)])?;
        // The sources carry different streams; each producer's messages still arrive in order.
        self.subscriptions.push(Reader {
            subscription,
            assembler: FragmentAssembler::new(),
            received: Received::with_gaps(),
        });
        Ok(())
    }

    fn offer(&mut self) -> Result<(), VictimError> {
        for _ in 0..self.random.usize(..30) {
            let mut message = vec![0; self.random.usize(HEADER_LENGTH..LONGEST_MESSAGE)];
            if let Some((publication, producer)) = pick(&mut self.random, &mut self.shared) {
                producer.write(&mut message);
                note(publication.offer(&message), producer)?;
            }
            if let Some((publication, producer)) = pick(&mut self.random, &mut self.exclusive) {
                producer.write(&mut message);
                note(publication.offer(&message), producer)?;
            }
        }
        Ok(())
    }

    fn claim(&mut self) -> Result<(), VictimError> {
        for _ in 0..self.random.usize(..30) {
            let length = self.random.usize(HEADER_LENGTH..1_300);
            let commit = self.random.bool();
            let (claimed, producer) = if self.random.bool() {
                let Some((publication, producer)) = pick(&mut self.random, &mut self.shared) else {
                    return Ok(());
                };
                (publication.try_claim(length), producer)
            } else {
                let Some((publication, producer)) = pick(&mut self.random, &mut self.exclusive)
                else {
                    return Ok(());
                };
                (publication.try_claim(length), producer)
            };
            match claimed {
                Ok(mut claim) => {
                    producer.write(&mut claim);
                    if commit {
                        claim.commit();
                        producer.accepted();
                    } else {
                        claim.abort();
                    }
                }
                Err(error) => refused(error)?,
            }
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<(), VictimError> {
        for reader in &mut self.subscriptions {
            let mut wrong = None;
            let received = &mut reader.received;
            let polled = reader.subscription.poll(
                reader.assembler.wrap(|message, _| {
                    if let Err(reason) = received.take(message) {
                        wrong.get_or_insert(reason);
                    }
                }),
                100,
            );
            match polled {
                Ok(_) => {}
                Err(PollError::DriverLost(lost)) => return Err(VictimError::of_lost(lost)),
                Err(error) => return Err(error.to_string().into()),
            }
            if let Some(reason) = wrong {
                return Err(reason.into());
            }
        }
        Ok(())
    }

    fn close_something(&mut self) {
        let random = &mut self.random;
        match random.u32(..4) {
            0 => drop(take(random, &mut self.shared)),
            1 => drop(take(random, &mut self.exclusive)),
            2 => drop(take(random, &mut self.subscriptions)),
            _ => drop(take(random, &mut self.counters)),
        }
        self.shared.truncate(HANDLES);
        self.exclusive.truncate(HANDLES);
        self.subscriptions.truncate(HANDLES);
        self.counters.truncate(HANDLES);
    }

    /// Closes the client with all its resources and connects a new one.
    fn reconnect(&mut self) -> Result<(), VictimError> {
        self.client.close();
        self.shared.clear();
        self.exclusive.clear();
        self.subscriptions.clear();
        self.counters.clear();
        self.client = connect(&self.spec.directory);
        Ok(())
    }
}

fn pick<'t, T>(random: &mut fastrand::Rng, among: &'t mut [T]) -> Option<&'t mut T> {
    match among.len() {
        0 => None,
        count => among.get_mut(random.usize(..count)),
    }
}

fn take<T>(random: &mut fastrand::Rng, from: &mut Vec<T>) -> Option<T> {
    match from.len() {
        0 => None,
        count => Some(from.swap_remove(random.usize(..count))),
    }
}

fn note(offered: Result<Position, OfferError>, producer: &mut Producer) -> Result<(), VictimError> {
    match offered {
        Ok(_) => {
            producer.accepted();
            Ok(())
        }
        Err(error) => refused(error),
    }
}

/// Returns an error unless a live client has to expect the rejection.
fn refused(error: OfferError) -> Result<(), VictimError> {
    match error {
        error if error.is_retryable() => Ok(()),
        OfferError::DriverLost(lost) => Err(VictimError::of_lost(lost)),
        error => Err(error.to_string().into()),
    }
}
