// SPDX-License-Identifier: Apache-2.0
//! Computations of handshakes. A Diffie-Hellman result costs some 50 microseconds, so that a keeper whose caller runs jobs
//! elsewhere computes none itself (docs/spec/transport-security.md §5.1).
//!
//! Contract: a job is a pure function of what it contains. The caller passes its result back to the keeper that made it, in
//! any order.

use std::fmt;
use std::sync::Arc;

use super::Port;
use crate::derive::{Fingerprint, PublicKey};
use crate::frame::{Init, Resp};
use crate::handshake::{Answer, HandshakeError, Initiation, Offer, Received};
use crate::identity::Identity;
use crate::link::LinkKeys;
use crate::provider::{Provider, Suite};
use crate::secret::Secret;
use crate::trust::TrustStore;

/// Computation of a handshake.
pub struct Job<P: Provider> {
    pub(super) port: Port,
    /// Number of the trust store and identity that it was begun with.
    pub(super) generation: u64,
    pub(super) work: Work<P>,
}

/// Kind of a job.
pub(super) enum Work<P: Provider> {
    /// Makes an INIT.
    Initiate(Box<Initiate>),
    /// Reads a RESP.
    Finish {
        fingerprint: Fingerprint,
        initiation: Box<Initiation<P>>,
        resp: Box<Resp>,
    },
    /// Reads an INIT, and answers it if its author is trusted.
    Respond(Box<Respond>),
}

/// Parts of an INIT.
pub(super) struct Initiate {
    pub(super) identity: Identity,
    pub(super) peer: PublicKey,
    pub(super) fingerprint: Fingerprint,
    pub(super) psk: Secret,
    pub(super) link_id: u64,
    pub(super) offer: Offer,
    pub(super) entropy: Secret,
}

/// Parts of a RESP.
pub(super) struct Respond {
    pub(super) identity: Identity,
    pub(super) trust: Arc<TrustStore>,
    /// Allowed suites in order of preference.
    pub(super) suites: Vec<Suite>,
    pub(super) incarnation: u64,
    pub(super) init: Init,
    /// Hash by which the INIT is remembered.
    pub(super) digest: [u8; 32],
    pub(super) link_id: u64,
    pub(super) entropy: Secret,
}

/// Result of a job.
pub struct JobResult<P: Provider> {
    pub(super) port: Port,
    pub(super) generation: u64,
    pub(super) outcome: Outcome<P>,
}

/// Outcome of a job.
pub(super) enum Outcome<P: Provider> {
    Initiated {
        fingerprint: Fingerprint,
        link_id: u64,
        initiation: Option<Box<Initiation<P>>>,
    },
    Finished {
        fingerprint: Fingerprint,
        /// It goes on waiting if the RESP is refused.
        initiation: Box<Initiation<P>>,
        result: Box<Result<(Answer, LinkKeys<P>), HandshakeError>>,
    },
    Responded {
        digest: [u8; 32],
        response: Response<P>,
    },
}

/// Answer to an INIT.
pub(super) enum Response<P: Provider> {
    /// The INIT is not authentic.
    Invalid,
    /// Its author is not trusted.
    Unknown(PublicKey),
    /// Its author takes none of the allowed suites.
    NoSuite(PublicKey),
    /// The answer to send, if the author may have what it asks for.
    Answered(Box<Answered<P>>),
}

/// Answer to an INIT of a trusted peer.
pub(super) struct Answered<P: Provider> {
    pub(super) peer: PublicKey,
    pub(super) offer: Offer,
    /// Suite for the back key of the peer.
    pub(super) suite: Suite,
    pub(super) resp: Resp,
    pub(super) keys: LinkKeys<P>,
}

impl<P: Provider> Job<P> {
    /// Computes the result. It takes up to four Diffie-Hellman computations.
    #[must_use]
    pub fn run(self) -> JobResult<P> {
        let outcome = match self.work {
            Work::Initiate(initiate) => Outcome::Initiated {
                fingerprint: initiate.fingerprint,
                link_id: initiate.link_id,
                initiation: initiate.run().map(Box::new),
            },
            Work::Finish {
                fingerprint,
                mut initiation,
                resp,
            } => {
                let result = Box::new(initiation.finish(&resp));
                Outcome::Finished {
                    fingerprint,
                    initiation,
                    result,
                }
            }
            Work::Respond(respond) => Outcome::Responded {
                digest: respond.digest,
                response: respond.run(),
            },
        };
        JobResult {
            port: self.port,
            generation: self.generation,
            outcome,
        }
    }
}

impl Initiate {
    fn run<P: Provider>(self) -> Option<Initiation<P>> {
        let (identity, offer) = (&self.identity, &self.offer);
        Initiation::new(
            identity,
            &self.peer,
            &self.psk,
            self.link_id,
            offer,
            self.entropy,
        )
        .ok()
    }
}

impl Respond {
    fn run<P: Provider>(self) -> Response<P> {
        let Ok(received) = Received::<P>::new(&self.identity, &self.init, self.entropy) else {
            return Response::Invalid;
        };
        let (peer, offer) = (*received.peer(), *received.offer());
        let Some(trusted) = self.trust.by_key::<P>(&peer) else {
            return Response::Unknown(peer);
        };
        let mut suites = self.suites.into_iter();
        let Some(suite) = suites.find(|suite| offer.suites & suite.bit() != 0) else {
            return Response::NoSuite(peer);
        };
        let answer = Answer {
            suite: suite.id(),
            incarnation: self.incarnation,
        };
        match received.answer(trusted.psk(), self.link_id, &answer) {
            Ok((resp, keys)) => Response::Answered(Box::new(Answered {
                peer,
                offer,
                suite,
                resp,
                keys,
            })),
            Err(_) => Response::Invalid,
        }
    }
}

impl<P: Provider> fmt::Debug for Job<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Job")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl<P: Provider> fmt::Debug for JobResult<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JobResult")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
