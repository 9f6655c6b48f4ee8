//! A round of a stream with an official client at one end: a process that comes and goes.

use std::any::Any;
use std::time::{Duration, Instant};

use crate::drivers::java;
use crate::ends::{Reading, Writing};
use crate::message::LENGTHS;
use crate::program::Program;
use crate::tally::Tally;
use crate::traffic;
use crate::waiting::{Trouble, an_official_client_starved, await_all};

/// Messages of a round.
const MESSAGES: u64 = 5_000;

/// Rounds begin that far apart at least: a virtual machine takes more to start than to send.
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

/// An official client writes, one of ours reads.
pub(crate) fn writes(
    flow: &'static str,
    stream: i32,
    writing: &Writing,
    reading: &Reading,
    tally: &Tally,
) -> Result<(), Trouble> {
    let began = Instant::now();
    let mut reader = reading.begin(stream)?;
    let mut publisher = start(
        "publish",
        &[
            ("dir", writing.directory.display().to_string()),
            ("channel", writing.channel.clone()),
            ("stream", stream.to_string()),
            ("linger", "true".to_owned()),
        ],
    );
    publisher.expect("PUBLICATION");
    let outcome = await_all("the official client's messages", || {
        reader.follow()?;
        Ok(reader.has_all(MESSAGES))
    });
    if let Err(why) = outcome {
        let why = why.and(&format!("{} of {MESSAGES}", reader.received()));
        return Err(ask(publisher, why));
    }
    publisher.finish();
    reader.end(MESSAGES)?;
    reader.account(flow, MESSAGES, tally);
    rest(began);
    Ok(())
}

/// One of ours writes, an official client reads, and holds every byte against what it should be.
pub(crate) fn reads(
    flow: &'static str,
    stream: i32,
    writing: &Writing,
    reading: &Reading,
    tally: &Tally,
) -> Result<(), Trouble> {
    let began = Instant::now();
    let mut subscriber = start(
        "subscribe",
        &[
            ("dir", reading.directory.display().to_string()),
            ("channel", reading.channel.clone()),
            ("stream", stream.to_string()),
            ("await", "eos".to_owned()),
        ],
    );
    subscriber.expect("SUBSCRIBED");
    let (_client, publication) = writing.begin(stream)?;
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
        return Err(ask(subscriber, why));
    }
    let received = subscriber.expect("RECEIVED");
    drop(publication);
    subscriber.finish();
    tally.received(flow, MESSAGES, Program::value(&received, "bytes"));
    rest(began);
    Ok(())
}

/// What was waited for in vain may be explained by what the program at the other end has said: then its end is a panic.
fn ask(program: Program, why: Trouble) -> Trouble {
    if matches!(why, Trouble::Failed(_)) {
        program.finish();
    }
    why
}

/// What a panic of a program's keeper says. Official clients that were given no time say so by an exception; those that
/// read what they should not, by a word of their own.
pub(crate) fn why(panic: &(dyn Any + Send)) -> Trouble {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.unwrap_or_else(|| "a panic, see above".to_owned());
    if ["ConductorServiceTimeoutException", "ClientTimeoutException"]
        .iter()
        .any(|exception| text.contains(exception))
    {
        an_official_client_starved();
    }
    if text.contains("MISMATCH") {
        Trouble::Wrong(text)
    } else {
        Trouble::Failed(text)
    }
}

fn rest(began: Instant) {
    std::thread::sleep(PAUSE.saturating_sub(began.elapsed()));
}
