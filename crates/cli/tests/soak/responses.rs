// SPDX-License-Identifier: Apache-2.0
//! A round of requests, each answered over a response channel that the server opens per requester.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use taran::{Client, Publication, Subscription};

use crate::endpoints::{PublicationSpec, SubscriptionSpec};
use crate::message::SHORT;
use crate::official;
use crate::program::Program;
use crate::tally::Tally;
use crate::traffic::{BURST, ROUND, offer};
use crate::waiting::{POLL_INTERVAL, RoundError, await_all, connect, retry, text};

/// Offset of the stream id of the responses from that of the requests.
const RESPONSE_STREAM_OFFSET: i32 = 1_000;

/// The responding client and its driver.
pub(crate) struct ServerSpec {
    pub(crate) by: Server,
    pub(crate) directory: PathBuf,
}

/// Implementation of the responding client.
#[derive(Clone, Copy)]
pub(crate) enum Server {
    Ours,
    Official,
}

/// Sends requests on `requests` and receives responses on `answers`, with `control-mode=response`.
pub(crate) fn round(
    flow: &'static str,
    stream: i32,
    requests: &PublicationSpec,
    answers: &SubscriptionSpec,
    server_spec: &ServerSpec,
    tally: &Tally,
) -> Result<(), RoundError> {
    let mut server =
        RunningServer::begin(server_spec, &requests.channel, &answers.channel, stream)?;
    let mut reader = answers.begin(stream + RESPONSE_STREAM_OFFSET)?;
    let id = reader.subscription.registration_id();
    let asking = format!("{}|response-correlation-id={id}", requests.channel);
    let asking = PublicationSpec::new(requests.directory.clone(), &asking);
    let (_client, publication) = asking.begin(stream)?;
    await_all("requests and answers are connected", || {
        server.poll()?;
        Ok(publication.is_connected() && reader.subscription.is_connected())
    })?;
    let (until, mut written) = (Instant::now() + ROUND, 0);
    while Instant::now() < until {
        written += offer(&publication, SHORT, written, BURST)?;
        server.poll()?;
        reader.poll()?;
        thread::sleep(POLL_INTERVAL);
    }
    await_all("all is answered", || {
        server.poll()?;
        reader.poll()?;
        Ok(reader.has_all(written))
    })
    .map_err(|why| why.and(&format!("{} of {written}", reader.received())))?;
    drop(publication);
    server.end()?;
    reader.end(written)?;
    reader.account(flow, written, tally);
    Ok(())
}

/// A running server.
enum RunningServer {
    Ours(Box<EchoServer>),
    Official(Program),
}

impl RunningServer {
    fn begin(
        server_spec: &ServerSpec,
        requests: &str,
        answers: &str,
        stream: i32,
    ) -> Result<RunningServer, String> {
        match server_spec.by {
            Server::Ours => Ok(RunningServer::Ours(Box::new(EchoServer::begin(
                server_spec,
                requests,
                answers,
                stream,
            )?))),
            Server::Official => {
                let mut program = official::start(
                    "answer",
                    &[
                        ("dir", server_spec.directory.display().to_string()),
                        ("channel", requests.to_owned()),
                        ("stream", stream.to_string()),
                        ("reply", answers.to_owned()),
                        (
                            "reply-stream",
                            (stream + RESPONSE_STREAM_OFFSET).to_string(),
                        ),
                    ],
                );
                program.expect("READY");
                Ok(RunningServer::Official(program))
            }
        }
    }

    /// Runs one cycle of a server that has no thread of its own.
    fn poll(&mut self) -> Result<(), String> {
        match self {
            RunningServer::Ours(echo) => echo.poll(),
            RunningServer::Official(_) => Ok(()),
        }
    }

    fn end(self) -> Result<(), RoundError> {
        match self {
            RunningServer::Ours(echo) => echo.end(),
            RunningServer::Official(program) => {
                program.finish();
                Ok(())
            }
        }
    }
}

/// A Taran client that sends each request back as its response.
struct EchoServer {
    client: Client,
    requests: Subscription,
    channel: String,
    stream: i32,
    answers: HashMap<i32, Publication>,
    waiting: VecDeque<(i32, Vec<u8>)>,
}

impl EchoServer {
    fn begin(
        server_spec: &ServerSpec,
        requests: &str,
        answers: &str,
        stream: i32,
    ) -> Result<EchoServer, String> {
        let client = connect(&server_spec.directory)?;
        Ok(EchoServer {
            requests: retry(|| client.add_subscription(requests, stream))?,
            client,
            channel: answers.to_owned(),
            stream: stream + RESPONSE_STREAM_OFFSET,
            answers: HashMap::new(),
            waiting: VecDeque::new(),
        })
    }

    fn poll(&mut self) -> Result<(), String> {
        for image in self.requests.image_views() {
            if !self.answers.contains_key(&image.session_id()) {
                let id = image.correlation_id();
                let channel = format!("{}|response-correlation-id={id}", self.channel);
                let publication = retry(|| self.client.add_publication(&channel, self.stream))?;
                self.answers.insert(image.session_id(), publication);
            }
        }
        let waiting = &mut self.waiting;
        let taken = self.requests.poll(
            |request, header| waiting.push_back((header.session_id(), request.to_vec())),
            64,
        );
        taken.map_err(text)?;
        while let Some((session_id, answer)) = self.waiting.front() {
            match self.answers[session_id].offer(answer) {
                Ok(_) => drop(self.waiting.pop_front()),
                Err(error) if error.is_retryable() => break,
                Err(error) => return Err(format!("an answer: {error}")),
            }
        }
        Ok(())
    }

    /// Waits until all requests have arrived.
    fn end(&self) -> Result<(), RoundError> {
        await_all("the end of the requests", || {
            Ok(self.requests.has_no_images())
        })?;
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(format!("{} requests without answer", self.waiting.len()).into())
        }
    }
}
