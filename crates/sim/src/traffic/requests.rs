//! What was asked of a driver beside publications and subscriptions: destinations, sources, rejections.

use taran::{AddError, Pending};

/// What kind of thing was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One destination more for a publication.
    AddDestination,
    /// One less.
    RemoveDestination,
    /// One source more for a subscription.
    AddSource,
    /// One less.
    RemoveSource,
    /// That an image goes away.
    Reject,
}

impl What {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AddDestination => "destination",
            Self::RemoveDestination => "removal of a destination",
            Self::AddSource => "source",
            Self::RemoveSource => "removal of a source",
            Self::Reject => "rejection",
        }
    }
}

/// Something that was asked for, and that is not had: not yet, or not at all.
#[derive(Debug)]
pub struct Request {
    /// What.
    pub what: What,
    /// With which channel, or of which.
    pub channel: String,
    /// When, on the clock of the world.
    pub at_ns: i64,
    /// Why it was refused.
    pub failure: Option<AddError>,
    answer: Option<Pending<()>>,
}

impl Request {
    /// True while there is no answer.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.answer.is_some()
    }
}

/// All of one publication or subscription that were not granted.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Request>,
    now_ns: i64,
    granted: u64,
}

impl Requests {
    /// Waits for an answer from now on.
    pub(super) fn ask(&mut self, what: What, channel: &str, answer: Pending<()>) {
        self.all.push(Request {
            what,
            channel: channel.to_owned(),
            at_ns: self.now_ns,
            failure: None,
            answer: Some(answer),
        });
    }

    /// Takes answers in; `granted` is told of those that are as was wished.
    pub(super) fn take_answers(&mut self, now_ns: i64, mut granted: impl FnMut(What, &str)) {
        self.now_ns = now_ns;
        let count = &mut self.granted;
        self.all.retain_mut(|request| {
            let answer = request.answer.as_mut().and_then(Pending::poll);
            let Some(answer) = answer else { return true };
            request.answer = None;
            match answer {
                Ok(()) => {
                    *count += 1;
                    granted(request.what, &request.channel);
                    false
                }
                Err(error) => {
                    request.failure = Some(error);
                    true
                }
            }
        });
    }

    pub(super) fn has_pending(&self) -> bool {
        self.all.iter().any(Request::is_pending)
    }

    pub(super) fn granted(&self) -> u64 {
        self.granted
    }

    pub(super) fn all(&self) -> &[Request] {
        &self.all
    }

    /// Waits for none any more: what they were about is closed.
    pub(super) fn forget(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.all)
    }
}
