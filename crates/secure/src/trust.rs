// SPDX-License-Identifier: Apache-2.0
//! Trust store: the peers whose keys are trusted, and for what (docs/spec/transport-security.md §4.3).

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use crate::derive::{Fingerprint, PublicKey};
use crate::identity::{KeyTextProblem, parse_public_key, public_key_text};
use crate::pattern::{PatternError, Patterns};
use crate::provider::Provider;
use crate::secret::Secret;

/// Most keys in a store.
pub const KEYS_MAX: usize = 4_096;
/// Longest name of a peer in bytes.
pub const NAME_MAX: usize = 64;
/// Pre-shared key of peers that have none.
const NO_PSK: Secret = Secret::new([0; 32]);

/// Reason why a text is no trust file.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TrustError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// Problem.
    pub problem: TrustProblem,
}

taran_core::debug_is_display!(TrustError);

/// Problem of a text that is no trust file.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustProblem {
    /// The key is none.
    #[error(transparent)]
    Key(KeyTextProblem),
    /// The same key is in the file twice.
    #[error("the key is on line {0} already")]
    DuplicateKey(usize),
    /// The name is missing.
    #[error("expected a name behind the key")]
    NoName,
    /// The name has other characters, or is too long.
    #[error(
        "a name has 1 to {NAME_MAX} of the characters A-Z a-z 0-9 . _ - and starts with a letter or digit"
    )]
    Name,
    /// The field is unknown.
    #[error("unknown field '{0}'; expected publish=, subscribe= or psk=")]
    Field(String),
    /// The field is there twice.
    #[error("the field {0}= is there twice")]
    DuplicateField(&'static str),
    /// A pattern is none.
    #[error(transparent)]
    Pattern(PatternError),
    /// The name of the file with the pre-shared key is empty.
    #[error("psk= needs the name of a file")]
    PskFile,
    /// The last line has no end: the rest of it, which may restrict the peer, may be missing.
    #[error("the last line does not end with a newline: the file may be truncated")]
    Unterminated,
    /// There are too many keys.
    #[error("a trust file has at most {KEYS_MAX} keys")]
    TooMany,
}

taran_core::debug_is_display!(TrustProblem);

/// Trusted key.
#[derive(Clone, Debug)]
pub struct Peer {
    key: PublicKey,
    fingerprint: Fingerprint,
    name: String,
    publish: Patterns,
    subscribe: Patterns,
    psk_file: Option<String>,
    psk: Secret,
    line: usize,
}

impl Peer {
    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the fingerprint of the key.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the name; keys of one name belong to one driver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the patterns of streams that this peer may send to this driver.
    #[must_use]
    pub const fn publish(&self) -> &Patterns {
        &self.publish
    }

    /// Returns the patterns of streams of this driver that the peer may have.
    #[must_use]
    pub const fn subscribe(&self) -> &Patterns {
        &self.subscribe
    }

    /// Returns the name of the file with the pre-shared key, if there is one.
    #[must_use]
    pub fn psk_file(&self) -> Option<&str> {
        self.psk_file.as_deref()
    }

    /// Returns the pre-shared key; zero if the file names none.
    #[must_use]
    pub const fn psk(&self) -> &Secret {
        &self.psk
    }

    /// Returns the line in the file, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns true if the peer may send a stream of a channel to this driver.
    #[must_use]
    pub fn may_publish(&self, channel: SocketAddr, stream_id: i32) -> bool {
        self.publish.matches(channel, stream_id)
    }

    /// Returns true if the peer may have a stream of a channel of this driver.
    #[must_use]
    pub fn may_subscribe(&self, channel: SocketAddr, stream_id: i32) -> bool {
        self.subscribe.matches(channel, stream_id)
    }
}

/// Trusted keys, found by key or fingerprint. A key that is not in it is not trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    peers: Vec<Peer>,
    by_fingerprint: HashMap<Fingerprint, usize>,
}

impl TrustStore {
    /// Parses a trust file. Pre-shared keys are set by [`Self::load_psks`].
    ///
    /// # Errors
    /// A line is invalid; nothing of the file is to be used then.
    pub fn parse<P: Provider>(text: &str) -> Result<Self, TrustError> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(TrustError {
                line: text.lines().count(),
                column: text.lines().next_back().map_or(0, str::len) + 1,
                problem: TrustProblem::Unterminated,
            });
        }
        let mut store = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let error = |(column, problem)| TrustError {
                line: line_number,
                column,
                problem,
            };
            if let Some(peer) = parse_line::<P>(line, line_number).map_err(error)? {
                store.insert(peer).map_err(|problem| error((1, problem)))?;
            }
        }
        Ok(store)
    }

    fn insert(&mut self, peer: Peer) -> Result<(), TrustProblem> {
        if self.peers.len() >= KEYS_MAX {
            return Err(TrustProblem::TooMany);
        }
        // Two keys of one fingerprint are as good as impossible, and would make the second one unreachable.
        if let Some(other) = self.by_fingerprint.get(&peer.fingerprint) {
            return Err(TrustProblem::DuplicateKey(self.peers[*other].line));
        }
        self.by_fingerprint
            .insert(peer.fingerprint, self.peers.len());
        self.peers.push(peer);
        Ok(())
    }

    /// Sets the pre-shared keys of all peers that name a file.
    ///
    /// # Errors
    /// The first error of `load`; the store is not to be used then.
    pub fn load_psks<E>(
        &mut self,
        mut load: impl FnMut(&str) -> Result<Secret, E>,
    ) -> Result<(), E> {
        for peer in &mut self.peers {
            if let Some(file) = &peer.psk_file {
                peer.psk = load(file)?;
            }
        }
        Ok(())
    }

    /// Looks up the names in all patterns. A name without addresses matches nothing.
    pub fn resolve_names(&mut self, mut resolve: impl FnMut(&str) -> Vec<std::net::IpAddr>) {
        for peer in &mut self.peers {
            for pattern in peer.publish.iter_mut().chain(peer.subscribe.iter_mut()) {
                if let Some(addresses) = pattern.name().map(&mut resolve) {
                    pattern.set_addresses(&addresses);
                }
            }
        }
    }

    /// Returns the peers in the order of the file.
    #[must_use]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Returns the peer with a fingerprint. A fingerprint proves nothing.
    #[must_use]
    pub fn by_fingerprint(&self, fingerprint: &Fingerprint) -> Option<&Peer> {
        self.by_fingerprint
            .get(fingerprint)
            .map(|index| &self.peers[*index])
    }

    /// Returns the peer with a key.
    #[must_use]
    pub fn by_key<P: Provider>(&self, key: &PublicKey) -> Option<&Peer> {
        self.by_fingerprint(&key.fingerprint::<P>())
            .filter(|peer| peer.key == *key)
    }

    /// Returns the number of different names.
    #[must_use]
    pub fn name_count(&self) -> usize {
        let names: HashSet<&str> = self.peers.iter().map(Peer::name).collect();
        names.len()
    }
}

/// Parses a line: a peer, or none for a comment.
fn parse_line<P: Provider>(
    line: &str,
    number: usize,
) -> Result<Option<Peer>, (usize, TrustProblem)> {
    let mut words = words(line).peekable();
    let Some((key_at, key)) = words.next() else {
        return Ok(None);
    };
    if key.starts_with('#') {
        return Ok(None);
    }
    let key = parse_public_key::<P>(key)
        .map_err(|error| (key_at + error.column, TrustProblem::Key(error.problem)))?;
    let (name_at, name) = words
        .next()
        .filter(|(_, word)| !word.starts_with('#') && !word.contains('='))
        .ok_or((line.len() + 1, TrustProblem::NoName))?;
    if !is_name(name) {
        return Err((name_at + 1, TrustProblem::Name));
    }
    let (mut publish, mut subscribe, mut psk_file) = (None, None, None);
    for (at, word) in words {
        if word.starts_with('#') {
            break;
        }
        let column = at + 1;
        let (field, value) = word
            .split_once('=')
            .ok_or_else(|| (column, TrustProblem::Field(printable(word))))?;
        match field {
            "publish" => set_patterns(&mut publish, "publish", column, value)?,
            "subscribe" => set_patterns(&mut subscribe, "subscribe", column, value)?,
            "psk" if psk_file.is_some() => {
                return Err((column, TrustProblem::DuplicateField("psk")));
            }
            "psk" if value.is_empty() => return Err((column, TrustProblem::PskFile)),
            "psk" => psk_file = Some(value.to_owned()),
            _ => return Err((column, TrustProblem::Field(printable(field)))),
        }
    }
    Ok(Some(Peer {
        key,
        fingerprint: key.fingerprint::<P>(),
        name: name.to_owned(),
        publish: publish.unwrap_or_default(),
        subscribe: subscribe.unwrap_or_default(),
        psk_file,
        psk: NO_PSK,
        line: number,
    }))
}

fn set_patterns(
    patterns: &mut Option<Patterns>,
    field: &'static str,
    column: usize,
    value: &str,
) -> Result<(), (usize, TrustProblem)> {
    if patterns.is_some() {
        return Err((column, TrustProblem::DuplicateField(field)));
    }
    let parsed = Patterns::parse(value).map_err(|(offset, error)| {
        (
            column + field.len() + 1 + offset,
            TrustProblem::Pattern(error),
        )
    })?;
    *patterns = Some(parsed);
    Ok(())
}

/// Returns the words of a line with their offsets.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_ascii_whitespace()
        .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

/// Returns a word with everything but printable ASCII escaped, cut to 32 characters.
fn printable(word: &str) -> String {
    word.escape_default().take(32).collect()
}

/// Returns true if a text can be the name of a peer.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.as_bytes()[0].is_ascii_alphanumeric()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Fields of a new line in a trust file.
#[derive(Clone, Debug)]
pub struct NewPeer<'a> {
    /// Key.
    pub key: PublicKey,
    /// Name.
    pub name: &'a str,
    /// Streams that the peer may send; none means nothing.
    pub publish: Option<&'a str>,
    /// Streams that the peer may have; none means nothing.
    pub subscribe: Option<&'a str>,
    /// File with the pre-shared key.
    pub psk_file: Option<&'a str>,
}

/// Returns a trust file with a line more. All other bytes stay.
///
/// # Errors
/// The file or the new line is invalid.
pub fn with_peer<P: Provider>(text: &str, peer: &NewPeer<'_>) -> Result<String, TrustError> {
    let mut edited = text.to_owned();
    edited.push_str(&public_key_text::<P>(&peer.key));
    edited.push(' ');
    edited.push_str(peer.name);
    for (field, value) in [
        ("publish", peer.publish),
        ("subscribe", peer.subscribe),
        ("psk", peer.psk_file),
    ] {
        if let Some(value) = value {
            edited.push_str(&format!(" {field}={value}"));
        }
    }
    edited.push('\n');
    let before = TrustStore::parse::<P>(text)?.peers.len();
    let store = TrustStore::parse::<P>(&edited)?;
    let last = store.peers.last();
    let is_as_meant = store.peers.len() == before + 1
        && last.is_some_and(|last| last.key == peer.key && last.name == peer.name);
    if is_as_meant {
        Ok(edited)
    } else {
        Err(TrustError {
            line: edited.lines().count(),
            column: 1,
            problem: TrustProblem::Name,
        })
    }
}

/// Returns a trust file without the lines of a name, and their number. All other bytes stay.
///
/// # Errors
/// The file is invalid.
pub fn without_peer<P: Provider>(text: &str, name: &str) -> Result<(String, usize), TrustError> {
    let store = TrustStore::parse::<P>(text)?;
    let removed: HashSet<usize> = store
        .peers
        .iter()
        .filter(|peer| peer.name == name)
        .map(|peer| peer.line)
        .collect();
    let edited = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(index, _)| !removed.contains(&(index + 1)))
        .map(|(_, line)| line)
        .collect();
    Ok((edited, removed.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::provider::DefaultProvider;

    fn key(number: u8) -> PublicKey {
        PublicKey([number; 32])
    }

    fn text(number: u8) -> String {
        public_key_text::<DefaultProvider>(&key(number))
    }

    fn parse(text: &str) -> Result<TrustStore, TrustError> {
        TrustStore::parse::<DefaultProvider>(text)
    }

    #[test]
    fn trust_file_gives_what_its_lines_say() {
        let store = parse(&format!(
            "# drivers\n\n{} alpha publish=*:40456#10 subscribe=10.0.0.0/8,*#3 psk=alpha.psk # note\n\t{}  beta\n{} alpha\n",
            text(1),
            text(2),
            text(3)
        ))
        .unwrap();
        let [alpha, beta, second] = store.peers() else {
            panic!("three peers");
        };
        let channel = "10.1.1.1:40456".parse().unwrap();
        assert_eq!((alpha.name(), alpha.line()), ("alpha", 3));
        assert!(alpha.may_publish(channel, 10) && !alpha.may_publish(channel, 11));
        assert!(alpha.may_subscribe(channel, 99));
        assert_eq!(alpha.psk_file(), Some("alpha.psk"));
        assert_eq!(beta.line(), 4);
        assert_eq!(second.name(), "alpha");
        assert_eq!(store.name_count(), 2);
    }

    #[test]
    fn patterns_left_out_allow_nothing() {
        let store = parse(&format!("{} alpha\n", text(1))).unwrap();
        let channel = "10.1.1.1:40456".parse().unwrap();
        assert!(!store.peers()[0].may_publish(channel, 10));
        assert!(!store.peers()[0].may_subscribe(channel, 10));
    }

    #[test]
    fn unknown_keys_are_not_found() {
        let store = parse(&format!("{} alpha\n", text(1))).unwrap();
        assert!(store.by_key::<DefaultProvider>(&key(1)).is_some());
        assert!(store.by_key::<DefaultProvider>(&key(2)).is_none());
    }

    #[test]
    fn trust_errors_name_line_and_column() {
        let error = |file: String| parse(&file).unwrap_err().to_string();
        let (one, two) = (text(1), text(2));
        assert_eq!(
            error(format!("# x\n{one}\n")),
            "line 2, column 61: expected a name behind the key"
        );
        assert_eq!(
            error(format!("{one} a publish=*,10.0.0.0/40\n")),
            "line 1, column 74: a prefix has at most the bits of its address, and no bit set behind them"
        );
        assert_eq!(
            error(format!("{one} a\n{two} b\n{one} c\n")),
            "line 3, column 1: the key is on line 1 already"
        );
        assert!(error(format!("{one} a color=red\n")).contains("unknown field 'color'"));
        assert!(error(format!("{one} a publish=* publish=*\n")).contains("there twice"));
        assert!(error(format!("{one} a psk=\n")).contains("name of a file"));
        assert!(error(format!("{one} ../x\n")).contains("a name has"));
        assert!(error(format!("{}x a\n", &one[..59])).starts_with("line 1, column 13:"));
    }

    #[test]
    fn trust_file_cut_anywhere_is_refused_or_loses_whole_lines() {
        let whole = format!(
            "{} alpha publish=10.0.0.0/8:40#1 subscribe=10.1.0.0/16#1\n",
            text(1)
        );
        for end in 1..whole.len() {
            let problem = parse(&whole[..end]).unwrap_err().problem;
            assert_eq!(problem, TrustProblem::Unterminated, "{end}");
        }
        assert!(parse("").unwrap().peers().is_empty());
    }

    #[test]
    fn peer_added_and_removed_leaves_the_file_as_it_was() {
        let before = format!("# mine\n{} alpha publish=*\n", text(1));
        let new = NewPeer {
            key: key(2),
            name: "beta",
            publish: Some("*"),
            subscribe: None,
            psk_file: None,
        };
        let with = with_peer::<DefaultProvider>(&before, &new).unwrap();
        assert_eq!(with, format!("{before}{} beta publish=*\n", text(2)));
        assert_eq!(
            without_peer::<DefaultProvider>(&with, "beta"),
            Ok((before.clone(), 1))
        );
        let bad = NewPeer {
            name: "a b=c",
            ..new.clone()
        };
        assert!(with_peer::<DefaultProvider>(&before, &bad).is_err());
        let bad = NewPeer {
            publish: Some("*\nx"),
            ..new
        };
        assert!(with_peer::<DefaultProvider>(&before, &bad).is_err());
    }

    #[test]
    fn store_of_more_keys_than_allowed_is_refused() {
        let lines: String = (0..=KEYS_MAX)
            .map(|number| {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&(number as u64).to_le_bytes());
                let key = public_key_text::<DefaultProvider>(&PublicKey(key));
                format!("{key} a\n")
            })
            .collect();
        assert_eq!(parse(&lines).unwrap_err().problem, TrustProblem::TooMany);
    }

    #[test]
    fn peer_debug_shows_no_pre_shared_key() {
        let mut store = parse(&format!("{} alpha psk=x\n", text(1))).unwrap();
        store
            .load_psks(|_| Ok::<_, ()>(Secret::new([0x77; 32])))
            .unwrap();
        assert!(format!("{store:?}").contains("<secret>"));
        assert!(!format!("{store:?}").contains("119, 119"));
    }

    proptest! {
        #[test]
        fn trust_parser_of_any_text_ends_with_a_result(line in "\\PC{0,100}") {
            let _ = parse(&format!("{line}\n"));
            let _ = parse(&format!("{} {line}\n", text(1)));
            let _ = parse(&format!("{} a {line}\n", text(1)));
        }
    }
}
