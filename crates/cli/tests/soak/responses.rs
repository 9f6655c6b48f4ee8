//! A round of requests, each of which is answered over a channel that the server opens for whoever asks.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use taran::{Client, Publication, Subscription};

use crate::ends::{Reading, Writing};
use crate::message::SHORT;
use crate::official;
use crate::program::Program;
use crate::tally::Tally;
use crate::traffic::{BURST, ROUND, offer};
use crate::waiting::{STEP, Trouble, again, await_all, connect, text};

/// Answers flow on a stream that many above that of the requests.
const ANSWERS: i32 = 1_000;

/// Who answers, and where.
pub(crate) struct Answering {
    pub(crate) by: Server,
    pub(crate) directory: PathBuf,
}

/// What kind of client.
#[derive(Clone, Copy)]
pub(crate) enum Server {
    Ours,
    Official,
}

/// Requests are written to `requests`, and answers come on `answers`, with `control-mode=response`.
pub(crate) fn round(
    flow: &'static str,
    stream: i32,
    requests: &Writing,
    answers: &Reading,
    answering: &Answering,
    tally: &Tally,
) -> Result<(), Trouble> {
    let mut server = Answers::begin(answering, &requests.channel, &answers.channel, stream)?;
    let mut reader = answers.begin(stream + ANSWERS)?;
    let id = reader.subscription.registration_id();
    let asking = format!("{}|response-correlation-id={id}", requests.channel);
    let asking = Writing::new(requests.directory.clone(), &asking);
    let (_client, publication) = asking.begin(stream)?;
    await_all("requests and answers are connected", || {
        server.turn()?;
        Ok(publication.is_connected() && reader.subscription.is_connected())
    })?;
    let (until, mut written) = (Instant::now() + ROUND, 0);
    while Instant::now() < until {
        written += offer(&publication, SHORT, written, BURST)?;
        server.turn()?;
        reader.follow()?;
        thread::sleep(STEP);
    }
    await_all("all is answered", || {
        server.turn()?;
        reader.follow()?;
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
enum Answers {
    Ours(Box<Echo>),
    Official(Program),
}

impl Answers {
    fn begin(
        answering: &Answering,
        requests: &str,
        answers: &str,
        stream: i32,
    ) -> Result<Answers, String> {
        match answering.by {
            Server::Ours => Ok(Answers::Ours(Box::new(Echo::begin(
                answering, requests, answers, stream,
            )?))),
            Server::Official => {
                let mut program = official::start(
                    "answer",
                    &[
                        ("dir", answering.directory.display().to_string()),
                        ("channel", requests.to_owned()),
                        ("stream", stream.to_string()),
                        ("reply", answers.to_owned()),
                        ("reply-stream", (stream + ANSWERS).to_string()),
                    ],
                );
                program.expect("READY");
                Ok(Answers::Official(program))
            }
        }
    }

    /// What there is to do for whoever has no thread of his own.
    fn turn(&mut self) -> Result<(), String> {
        match self {
            Answers::Ours(echo) => echo.turn(),
            Answers::Official(_) => Ok(()),
        }
    }

    fn end(self) -> Result<(), Trouble> {
        match self {
            Answers::Ours(echo) => echo.end(),
            Answers::Official(program) => {
                program.finish();
                Ok(())
            }
        }
    }
}

/// A client of ours that answers each request with itself.
struct Echo {
    client: Client,
    requests: Subscription,
    channel: String,
    stream: i32,
    answers: HashMap<i32, Publication>,
    waiting: VecDeque<(i32, Vec<u8>)>,
}

impl Echo {
    fn begin(
        answering: &Answering,
        requests: &str,
        answers: &str,
        stream: i32,
    ) -> Result<Echo, String> {
        let client = connect(&answering.directory)?;
        Ok(Echo {
            requests: again(|| client.add_subscription(requests, stream))?,
            client,
            channel: answers.to_owned(),
            stream: stream + ANSWERS,
            answers: HashMap::new(),
            waiting: VecDeque::new(),
        })
    }

    fn turn(&mut self) -> Result<(), String> {
        for image in self.requests.image_views() {
            if !self.answers.contains_key(&image.session_id()) {
                let id = image.correlation_id();
                let channel = format!("{}|response-correlation-id={id}", self.channel);
                let publication = again(|| self.client.add_publication(&channel, self.stream))?;
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

    /// When all requests have come.
    fn end(&self) -> Result<(), Trouble> {
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
