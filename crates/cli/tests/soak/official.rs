// SPDX-License-Identifier: Apache-2.0
//! A round of a flow with an official client, run in a process of its own.

use std::any::Any;
use std::time::{Duration, Instant};

use crate::drivers::java;
use crate::endpoints::{PublicationSpec, SubscriptionSpec};
use crate::message::LENGTHS;
use crate::program::Program;
use crate::tally::Tally;
use crate::traffic;
use crate::waiting::{RoundError, await_all, record_starved_official_client};

/// Number of messages in a round.
const MESSAGES: u64 = 5_000;

/// Minimum time between the starts of two rounds, because starting a Java virtual machine costs more than sending.
const PAUSE: Duration = Duration::from_secs(15);

/// Starts a program of the interop project.
pub(crate) fn start(name: &str, arguments: &[(&str, String)]) -> Program {
    let lengths: Vec<String> = LENGTHS.iter().map(usize::to_string).collect();
    let mut command = java(None);
    command
        .arg(name)
        .arg(format!("lengths={}", lengths.join(",")));
    command.args([format!("count={MESSAGES}"), "timeout=120".to_owned()]);
    command.args(
        arguments
            .iter()
            .map(|(key, value)| format!("{key}={value}")),
    );
    Program::start(name, &mut command)
}

/// An official client publishes, a Taran client receives.
pub(crate) fn writes(
    flow: &'static str,
    stream: i32,
    publication_spec: &PublicationSpec,
    subscription_spec: &SubscriptionSpec,
    tally: &Tally,
) -> Result<(), RoundError> {
    let began = Instant::now();
    let mut reader = subscription_spec.begin(stream)?;
    let mut publisher = start(
        "publish",
        &[
            ("dir", publication_spec.directory.display().to_string()),
            ("channel", publication_spec.channel.clone()),
            ("stream", stream.to_string()),
            ("linger", "true".to_owned()),
        ],
    );
    publisher.expect("PUBLICATION");
    let outcome = await_all("the official client's messages", || {
        reader.poll()?;
        Ok(reader.has_all(MESSAGES))
    });
    if let Err(why) = outcome {
        let why = why.and(&format!("{} of {MESSAGES}", reader.received()));
        return Err(explain(publisher, why));
    }
    publisher.finish();
    reader.end(MESSAGES)?;
    reader.account(flow, MESSAGES, tally);
    pause(began);
    Ok(())
}

/// A Taran client publishes, an official client receives and checks every byte.
pub(crate) fn reads(
    flow: &'static str,
    stream: i32,
    publication_spec: &PublicationSpec,
    subscription_spec: &SubscriptionSpec,
    tally: &Tally,
) -> Result<(), RoundError> {
    let began = Instant::now();
    let mut subscriber = start(
        "subscribe",
        &[
            ("dir", subscription_spec.directory.display().to_string()),
            ("channel", subscription_spec.channel.clone()),
            ("stream", stream.to_string()),
            ("await", "eos".to_owned()),
        ],
    );
    subscriber.expect("SUBSCRIBED");
    let (_client, publication) = publication_spec.begin(stream)?;
    await_all("the official client is there", || {
        Ok(publication.is_connected())
    })?;
    let mut written = 0;
    let outcome = await_all("all is written", || {
        let most = (MESSAGES - written).min(16);
        written += traffic::offer(&publication, LENGTHS, written, most)?;
        Ok(written == MESSAGES)
    });
    if let Err(why) = outcome {
        return Err(explain(subscriber, why));
    }
    let received = subscriber.expect("RECEIVED");
    drop(publication);
    subscriber.finish();
    tally.received(flow, MESSAGES, Program::value(&received, "bytes"));
    pause(began);
    Ok(())
}

/// Lets the external program explain a timeout: if it has failed itself, its end is a panic.
fn explain(program: Program, why: RoundError) -> RoundError {
    if matches!(why, RoundError::Failed(_)) {
        program.finish();
    }
    why
}

/// Converts the panic of an external program. Official clients report starvation by an exception, and wrong messages by
/// `MISMATCH`.
pub(crate) fn why(panic: &(dyn Any + Send)) -> RoundError {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.unwrap_or_else(|| "a panic, see above".to_owned());
    if ["ConductorServiceTimeoutException", "ClientTimeoutException"]
        .iter()
        .any(|exception| text.contains(exception))
    {
        record_starved_official_client();
    }
    if text.contains("MISMATCH") {
        RoundError::Wrong(text)
    } else {
        RoundError::Failed(text)
    }
}

fn pause(began: Instant) {
    std::thread::sleep(PAUSE.saturating_sub(began.elapsed()));
}
