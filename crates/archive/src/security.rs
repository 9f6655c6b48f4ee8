// SPDX-License-Identifier: Apache-2.0
//! Authentication of clients and authorisation of their requests (`docs/spec/archive.md` §9).
//!
//! A program that embeds an archive supplies its own implementations; the defaults accept all.

use std::collections::HashMap;

/// Schema id of the archive's control protocol, with which an [`AuthorisationService`] is asked.
pub const CONTROL_PROTOCOL_ID: i32 = 101;

/// Decision of an [`Authenticator`] about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Challenge(Vec<u8>),
    Authenticate(Vec<u8>),
    Reject,
}

/// A session whose authentication an [`Authenticator`] decides. The last call counts. A decision that cannot be sent to
/// the client yet is asked for again.
#[derive(Debug)]
pub struct SessionProxy {
    session_id: i64,
    decision: Option<Decision>,
}

impl SessionProxy {
    pub(crate) fn new(session_id: i64) -> Self {
        Self {
            session_id,
            decision: None,
        }
    }

    pub(crate) fn into_decision(self) -> Option<Decision> {
        self.decision
    }

    /// Returns the id of the session, as in the earlier events.
    #[must_use]
    pub fn session_id(&self) -> i64 {
        self.session_id
    }

    /// Sends a challenge to the client.
    pub fn challenge(&mut self, challenge: impl Into<Vec<u8>>) {
        self.decision = Some(Decision::Challenge(challenge.into()));
    }

    /// Accepts the client, with the identity by which its requests are authorised.
    pub fn authenticate(&mut self, principal: impl Into<Vec<u8>>) {
        self.decision = Some(Decision::Authenticate(principal.into()));
    }

    /// Rejects the client.
    pub fn reject(&mut self) {
        self.decision = Some(Decision::Reject);
    }
}

/// Decides which clients may connect.
///
/// Contract: `on_connect_request` comes first; then `on_connected_session` every 200 ms until it decides. After a
/// challenge comes `on_challenge_response` if the client answers, and `on_challenged_session` in each duty cycle until it
/// decides. `on_session_closed` is the last call of each session. All calls come from one thread and must not wait.
pub trait Authenticator: Send {
    /// Called when a client asks for a session.
    fn on_connect_request(&mut self, session_id: i64, credentials: &[u8], now_ms: i64);

    /// Called when a client answers a challenge.
    fn on_challenge_response(&mut self, session_id: i64, credentials: &[u8], now_ms: i64);

    /// Called when responses to a client can be sent.
    fn on_connected_session(&mut self, session: &mut SessionProxy, now_ms: i64);

    /// Called while a challenge is not decided.
    fn on_challenged_session(&mut self, session: &mut SessionProxy, now_ms: i64);

    /// Called when a session has ended, decided or not: nothing needs to be remembered of it.
    fn on_session_closed(&mut self, _session_id: i64) {}
}

/// Accepts all clients, with an empty principal.
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "DefaultAuthenticatorSupplier")]
pub struct AcceptAll;

impl Authenticator for AcceptAll {
    fn on_connect_request(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_connected_session(&mut self, session: &mut SessionProxy, _: i64) {
        session.authenticate([]);
    }

    fn on_challenged_session(&mut self, session: &mut SessionProxy, _: i64) {
        session.authenticate([]);
    }
}

/// Accepts clients by a table of credentials; rejects all others at once.
#[derive(Clone, Debug, Default)]
pub struct SimpleAuthenticator {
    principals: HashMap<Vec<u8>, Vec<u8>>,
    sessions: HashMap<i64, Option<Vec<u8>>>,
}

impl SimpleAuthenticator {
    /// Returns an authenticator that rejects all clients.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts clients with these credentials as `principal`.
    #[must_use]
    pub fn accept(
        mut self,
        credentials: impl Into<Vec<u8>>,
        principal: impl Into<Vec<u8>>,
    ) -> Self {
        self.principals.insert(credentials.into(), principal.into());
        self
    }

    fn decide(&mut self, session: &mut SessionProxy) {
        match self.sessions.get(&session.session_id()) {
            Some(Some(principal)) => session.authenticate(principal.clone()),
            Some(None) | None => session.reject(),
        }
    }
}

impl Authenticator for SimpleAuthenticator {
    fn on_connect_request(&mut self, session_id: i64, credentials: &[u8], _: i64) {
        let principal = self.principals.get(credentials).cloned();
        self.sessions.insert(session_id, principal);
    }

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_connected_session(&mut self, session: &mut SessionProxy, _: i64) {
        self.decide(session);
    }

    fn on_challenged_session(&mut self, session: &mut SessionProxy, _: i64) {
        self.decide(session);
    }

    fn on_session_closed(&mut self, session_id: i64) {
        self.sessions.remove(&session_id);
    }
}

/// Decides which requests a client may make.
pub trait AuthorisationService: Send {
    /// Returns true if a client may make a request. `action_id` is the template id of the request in the protocol;
    /// `principal` is what the authenticator gave, empty before that.
    fn is_authorised(&self, protocol_id: i32, action_id: i32, principal: &[u8]) -> bool;
}

/// Permits all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl AuthorisationService for AllowAll {
    fn is_authorised(&self, _: i32, _: i32, _: &[u8]) -> bool {
        true
    }
}

/// Denies all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl AuthorisationService for DenyAll {
    fn is_authorised(&self, _: i32, _: i32, _: &[u8]) -> bool {
        false
    }
}

/// Returns the authorisation service of a configuration.
pub(crate) fn authorisation_of(denies_all: bool) -> Box<dyn AuthorisationService> {
    if denies_all {
        Box::new(DenyAll)
    } else {
        Box::new(AllowAll)
    }
}

/// Authorises by rules: those of the principal, then general ones, then a default, which denies. Among the rules of
/// one kind, that of a single action comes before that of its protocol.
#[derive(Clone, Debug, Default)]
pub struct SimpleAuthorisationService {
    of_principals: HashMap<Vec<u8>, Rules>,
    general: Rules,
    is_allowed_by_default: bool,
}

#[derive(Clone, Debug, Default)]
struct Rules {
    actions: HashMap<(i32, i32), bool>,
    protocols: HashMap<i32, bool>,
}

impl Rules {
    fn decide(&self, protocol_id: i32, action_id: i32) -> Option<bool> {
        let of_action = self.actions.get(&(protocol_id, action_id));
        of_action
            .or_else(|| self.protocols.get(&protocol_id))
            .copied()
    }

    fn add(&mut self, protocol_id: i32, action_id: Option<i32>, is_allowed: bool) {
        match action_id {
            Some(action_id) => self.actions.insert((protocol_id, action_id), is_allowed),
            None => self.protocols.insert(protocol_id, is_allowed),
        };
    }
}

impl SimpleAuthorisationService {
    /// Returns a service that denies all requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what happens to requests without a rule.
    #[must_use]
    pub fn by_default(mut self, is_allowed: bool) -> Self {
        self.is_allowed_by_default = is_allowed;
        self
    }

    /// Adds a rule for all principals, for one action or for all of a protocol.
    #[must_use]
    pub fn general(mut self, protocol_id: i32, action_id: Option<i32>, is_allowed: bool) -> Self {
        self.general.add(protocol_id, action_id, is_allowed);
        self
    }

    /// Adds a rule for one principal, for one action or for all of a protocol.
    #[must_use]
    pub fn of_principal(
        mut self,
        principal: impl Into<Vec<u8>>,
        protocol_id: i32,
        action_id: Option<i32>,
        is_allowed: bool,
    ) -> Self {
        let rules = self.of_principals.entry(principal.into()).or_default();
        rules.add(protocol_id, action_id, is_allowed);
        self
    }
}

impl AuthorisationService for SimpleAuthorisationService {
    fn is_authorised(&self, protocol_id: i32, action_id: i32, principal: &[u8]) -> bool {
        let own = self.of_principals.get(principal);
        own.and_then(|rules| rules.decide(protocol_id, action_id))
            .or_else(|| self.general.decide(protocol_id, action_id))
            .unwrap_or(self.is_allowed_by_default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_authenticator_accepts_known_credentials_only() {
        let mut authenticator = SimpleAuthenticator::new().accept("secret", "desk");
        authenticator.on_connect_request(1, b"secret", 0);
        authenticator.on_connect_request(2, b"guess", 0);
        for (session_id, expected) in [
            (1, Decision::Authenticate(b"desk".to_vec())),
            (2, Decision::Reject),
            (3, Decision::Reject),
        ] {
            let mut session = SessionProxy::new(session_id);
            authenticator.on_connected_session(&mut session, 0);
            assert_eq!(session.into_decision(), Some(expected));
        }
        for session_id in [1, 2] {
            authenticator.on_session_closed(session_id);
        }
        assert_eq!(authenticator.sessions.len(), 0);
    }

    #[test]
    fn simple_authorisation_takes_the_most_specific_rule() {
        let service = SimpleAuthorisationService::new()
            .general(101, Some(4), true)
            .of_principal("desk", 101, None, false)
            .of_principal("desk", 101, Some(6), true);
        for (action, principal, expected) in [
            (4, "", true),
            (5, "", false),
            (4, "desk", false),
            (6, "desk", true),
            (6, "", false),
        ] {
            let principal = principal.as_bytes();
            assert_eq!(
                service.is_authorised(101, action, principal),
                expected,
                "{action}"
            );
        }
        assert!(service.by_default(true).is_authorised(7, 1, b""));
    }
}
