// SPDX-License-Identifier: Apache-2.0
//! Subscriptions: all kinds of polls for messages.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{
    Action, Client, ClientBuilder, ControlledFragmentAssembler, FragmentAssembler, Publication,
};

use self::limit::Limit;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();
    let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    let publication = client.add_publication("aeron:ipc", 1001)?;
    send(&publication, b"short")?;
    send(&publication, &[7; 5_000])?;

    // Fragments. A long message is delivered as several of them.
    let mut fragments = 0;
    while fragments < 5 {
        fragments += subscription.poll(
            |fragment, header| {
                let (begin, end) = (header.is_begin(), header.is_end());
                println!("{} bytes, begin {begin}, end {end}", fragment.len());
            },
            10,
        )?;
        limit.wait_for("all fragments")?;
    }

    // Whole messages: an assembler wraps the handler. It reuses its buffers, so keep it between polls.
    send(&publication, &[7; 5_000])?;
    let mut assembler = FragmentAssembler::new();
    let mut messages = 0;
    while messages == 0 {
        let handler = |message: &[u8], header: &taran::Header<'_>| {
            println!(
                "{} bytes from session {}",
                message.len(),
                header.session_id()
            );
            messages += 1;
        };
        subscription.poll(assembler.wrap(handler), 10)?;
        limit.wait_for("a message")?;
    }

    // Controlled polls: the handler decides how the poll continues.
    send(&publication, b"not now")?;
    send(&publication, b"last")?;
    let mut assembler = ControlledFragmentAssembler::new();
    let (mut aborts, mut taken) = (0, 0);
    while taken < 2 {
        let handler = |message: &[u8], _: &taran::Header<'_>| {
            if message == b"not now" && aborts < 3 {
                // The next poll delivers the message again.
                aborts += 1;
                return Action::Abort;
            }
            taken += 1;
            match message {
                // Consumed; the position is stored at once.
                b"not now" => Action::Commit,
                // Consumed; the poll ends.
                _ => Action::Break,
            }
        };
        subscription.controlled_poll(assembler.wrap(handler), 10)?;
        limit.wait_for("both messages")?;
    }
    println!("received after {aborts} aborts");

    // Handlers that fail: the error ends the poll, and the message is delivered again.
    send(&publication, b"fail once")?;
    let (mut failed, mut received) = (false, 0);
    while received == 0 {
        let handler = |_: &[u8], _: &taran::Header<'_>| {
            if failed {
                return Ok(());
            }
            failed = true;
            Err(Box::<dyn std::error::Error>::from("the first try fails"))
        };
        match subscription.try_poll(handler, 10) {
            Ok(fragments) => received += fragments,
            Err(error) => println!("{error}"),
        }
        limit.wait_for("the message")?;
    }
    Ok(())
}

fn send(publication: &Publication, message: &[u8]) -> Result<(), taran::OfferError> {
    let deadline = Instant::now() + Duration::from_secs(5);
    publication.offer_until(message, deadline, &mut Yield)?;
    Ok(())
}
