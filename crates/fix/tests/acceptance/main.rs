// SPDX-License-Identifier: Apache-2.0
//! Acceptance of the session layer: the scripts in `scripts.txt`, each for all versions that it names.

#[path = "../shared/mod.rs"]
mod shared;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use shared::{dictionary, fix50};
use taran_fix::dict::{Dictionary, Tags};
use taran_fix::session::{
    Application, Authentication, CancelOn, Config, DisconnectReason, Event, First, Inbound,
    MissingOrig, NextExpected, Now, Numbers, Outbound, Output, Profile, Role, Schedule, SendError,
    Sent, Session, State, Stored, ThrottleAction, ThrottleLimit, first_message,
};
use taran_fix::wire::{Timestamp, checksum, is_header};

const VERSIONS: [&str; 6] = ["4.0", "4.1", "4.2", "4.3", "4.4", "FIXT"];
const START: &[u8] = b"20260105-12:00:00";

/// Everything that a session has decided.
#[derive(Default)]
struct Collected {
    sent: Vec<Vec<u8>>,
    recorded: BTreeMap<u64, Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    events: Vec<String>,
    is_closed: Option<DisconnectReason>,
}

impl Output for Collected {
    fn send(&mut self, message: Outbound<'_>) {
        if matches!(message.sent, Sent::New | Sent::Deferred) {
            self.recorded.insert(message.seq, message.bytes.to_vec());
        }
        if message.sent != Sent::Deferred {
            self.sent.push(message.bytes.to_vec());
        }
    }

    fn deliver(&mut self, message: Inbound<'_>) {
        self.delivered.push(message.frame.bytes().to_vec());
    }

    fn event(&mut self, event: Event<'_>) {
        self.events.push(format!("{event:?}"));
    }

    fn disconnect(&mut self, reason: DisconnectReason) {
        self.is_closed = Some(reason);
    }
}

struct Run {
    version: &'static str,
    config: Config,
    session: Option<Session>,
    out: Collected,
    now: Now,
    /// Number of the next message of the peer.
    next: u64,
    pending: Vec<u8>,
    orders: HashSet<Vec<u8>>,
    handled: usize,
    /// The application answers orders.
    echoes: bool,
    numbers: Numbers,
    is_second_closed: bool,
}

fn begin_string(version: &str) -> String {
    match version {
        "FIXT" => "FIXT.1.1".to_owned(),
        other => format!("FIX.{other}"),
    }
}

fn load(version: &str) -> Dictionary {
    match version {
        "FIXT" => fix50(),
        other => dictionary(&format!("FIX{}.xml", other.replace('.', ""))),
    }
}

/// Returns true if the version is among those that the text names.
fn includes(versions: &str, version: &str) -> bool {
    let rank = |version: &str| {
        let found = VERSIONS.iter().position(|known| *known == version);
        found.unwrap_or_else(|| panic!("no version {version:?}"))
    };
    if let Some(first) = versions.strip_suffix('+') {
        rank(version) >= rank(first)
    } else if let Some(last) = versions.strip_prefix('-') {
        rank(version) <= rank(last)
    } else {
        version == versions
    }
}

impl Run {
    fn new(version: &'static str, dictionary: &Arc<Dictionary>) -> Self {
        let mut config = Config::new(Role::Acceptor, &begin_string(version), "ISLD", "TW");
        config.dictionary = Some(Arc::clone(dictionary));
        config.profile = Profile::Quickfix;
        config.reset_on_logon = true;
        config.checks.unknown = Tags::Reject;
        config.default_appl_ver_id = (version == "FIXT").then(|| "9".to_owned());
        Self {
            version,
            config,
            session: None,
            out: Collected::default(),
            now: Now {
                monotonic: 0,
                wall: Timestamp::parse(START).expect("valid"),
            },
            next: 1,
            pending: Vec::new(),
            orders: HashSet::new(),
            handled: 0,
            echoes: true,
            numbers: Numbers::default(),
            is_second_closed: false,
        }
    }

    fn connect(&mut self) {
        self.create();
        self.pending.clear();
        self.out.is_closed = None;
        let now = self.now;
        let (session, out) = self.session();
        session.connected(now, out);
    }

    /// Makes the session, without a connection.
    fn create(&mut self) {
        if self.session.is_none() {
            let session = Session::new(self.config.clone(), self.numbers);
            self.session = Some(session.expect("valid"));
        }
    }

    /// Returns a run for the rules of our own.
    fn own(version: &'static str, dictionary: &Arc<Dictionary>) -> Self {
        let mut run = Self::new(version, dictionary);
        run.config.profile = Profile::Standard;
        run.config.reset_on_logon = false;
        run.config.checks.unknown = Tags::Keep;
        run.echoes = false;
        run
    }

    fn session(&mut self) -> (&mut Session, &mut Collected) {
        let session = self.session.as_mut().expect("connected before");
        (session, &mut self.out)
    }

    /// Passes bytes to the session, and lets the application answer.
    fn pass(&mut self, bytes: &[u8]) {
        let now = self.now;
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let (session, out) = self.session();
        let consumed = session.receive(&pending, now, out);
        self.pending = pending[consumed..].to_vec();
        self.serve();
        for message in std::mem::take(&mut self.out.delivered) {
            self.handle(&message);
        }
        self.serve();
    }

    /// Passes stored messages that the session wants.
    fn serve(&mut self) {
        let now = self.now;
        let (session, out) = self.session();
        while let Some(wanted) = session.wanted() {
            let seq = *wanted.start();
            let bytes = out.recorded.get(&seq).cloned();
            let stored = bytes.as_deref().map_or(Stored::Skip, Stored::Message);
            session.stored(seq, stored, now, out);
        }
    }

    /// Echoes orders, and ignores those that it has and that may be sent again.
    fn handle(&mut self, bytes: &[u8]) {
        let frame = shared::frame(bytes);
        let id = frame.get(11).unwrap_or_default().to_vec();
        let is_resend = frame.get(97) == Some(b"Y");
        if !self.orders.insert(id) && is_resend {
            return;
        }
        self.handled += 1;
        if !self.echoes {
            return;
        }
        let mut body = Vec::new();
        for field in frame
            .fields()
            .filter_map(Result::ok)
            .filter(|field| !is_header(field.tag))
        {
            body.extend(format!("{}=", field.tag).into_bytes());
            body.extend(field.value);
            body.push(1);
        }
        let msg_type = frame.msg_type().to_vec();
        let now = self.now;
        let (session, out) = self.session();
        let message = Application {
            msg_type: &msg_type,
            body: &body,
            header: b"",
        };
        session.send(message, now, out).expect("logged on");
    }

    fn wait(&mut self, seconds: f64) {
        let end = self.now.monotonic + (seconds * 1e9) as i64;
        loop {
            let now = self.now;
            let (session, _) = self.session();
            let next = session.next_deadline(now).filter(|next| *next <= end);
            let at = next.unwrap_or(end).max(now.monotonic);
            let later = at - now.monotonic;
            self.now.monotonic = at;
            self.now.wall = Timestamp::from_nanos(now.wall.nanos() + later);
            if next.is_none() {
                return;
            }
            let (session, out) = (self.session.as_mut().expect("connected"), &mut self.out);
            session.tick(self.now, out);
            if !self.pending.is_empty() {
                self.pass(b"");
            }
        }
    }

    /// Lets time pass without ticks, and then ticks once.
    fn pause(&mut self, seconds: i64) {
        self.now.monotonic += seconds * 1_000_000_000;
        self.now.wall = Timestamp::from_nanos(self.now.wall.nanos() + seconds * 1_000_000_000);
        let now = self.now;
        let (session, out) = self.session();
        session.tick(now, out);
    }

    fn app(&mut self, id: &str) -> Result<u64, SendError> {
        let body = self
            .expand(&format!("{{order {id}}}|"))
            .replace('|', "\x01");
        let now = self.now;
        let (session, out) = self.session();
        let message = Application {
            msg_type: b"D",
            body: body.as_bytes(),
            header: b"",
        };
        session.send(message, now, out)
    }

    fn expect_event(&mut self, name: &str) {
        let found = self
            .out
            .events
            .iter()
            .position(|event| event.starts_with(name));
        let at = found.unwrap_or_else(|| panic!("no event {name} in {:?}", self.out.events));
        self.out.events.drain(..=at);
    }

    fn time(&self, offset: i64) -> String {
        let time = Timestamp::from_nanos(self.now.wall.nanos() + offset * 1_000_000_000);
        let text = time.to_string();
        let length = if includes("-4.1", self.version) {
            17
        } else {
            21
        };
        text[..length].to_owned()
    }

    /// Replaces `{...}`.
    fn expand(&self, text: &str) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let end = start + rest[start..].find('}').expect("closed");
            expanded.push_str(&rest[..start]);
            expanded.push_str(&self.macro_text(&rest[start + 1..end]));
            rest = &rest[end + 1..];
        }
        expanded + rest
    }

    fn macro_text(&self, name: &str) -> String {
        if let Some(offset) = name.strip_prefix("now") {
            let offset = offset.trim_start_matches('+');
            return self.time(if offset.is_empty() {
                0
            } else {
                offset.parse().expect("a number")
            });
        }
        match name {
            "begin" => return begin_string(self.version),
            "news" if includes("-4.1", self.version) => return "58=text".into(),
            "long" => return "x".repeat(5000),
            "news" => return "33=1|58=text".into(),
            _ => {}
        }
        let order = name
            .strip_prefix("order ")
            .unwrap_or_else(|| panic!("no macro {name:?}"));
        let (id, option) = order.split_once(' ').unwrap_or((order, ""));
        let mut fields = vec![
            format!("11={id}"),
            "21=1".into(),
            "55=S".into(),
            "54=1".into(),
            format!("60={}", self.time(0)),
            "38=100".into(),
            "40=1".into(),
        ];
        if id == "-" {
            fields.remove(0);
        }
        if option == "reversed" {
            fields.reverse();
        } else if let Some((tag, _)) = option.split_once('=') {
            let field = fields
                .iter_mut()
                .find(|field| field.split('=').next() == Some(tag));
            *field.expect("a field of orders") = option.to_owned();
        }
        fields.join("|")
    }

    /// Makes a message of a line of the script.
    fn message(&mut self, line: &str) -> Vec<u8> {
        if let Some(raw) = line.strip_prefix("raw ") {
            return self.expand(raw).replace('|', "\x01").into_bytes();
        }
        let (mut begin, mut length_offset, mut sum_offset) =
            (begin_string(self.version), 0i64, 0u8);
        let mut line = line;
        while let Some((option, rest)) = line.split_once(' ') {
            match option.split_once('=') {
                Some(("begin", value)) => begin = value.to_owned(),
                Some(("length", value)) => length_offset = value.parse().expect("a number"),
                Some(("sum", value)) => sum_offset = value.parse().expect("a number"),
                _ => break,
            }
            line = rest;
        }
        let text = self.expand(line);
        let mut parts = text.split('|');
        let msg_type = parts.next().expect("a type");
        let fields: Vec<&str> = parts.collect();
        let has = |tag: &str| {
            fields
                .iter()
                .any(|field| field.split('=').next() == Some(tag))
        };
        let explicit = fields
            .iter()
            .find_map(|field| field.strip_prefix("34=")?.parse::<u64>().ok());
        let seq = explicit.unwrap_or(self.next);
        self.next = seq + 1;
        let mut body = format!("35={msg_type}\x01");
        for (tag, value) in [
            ("34", seq.to_string()),
            ("49", "TW".to_owned()),
            ("52", self.time(0)),
            ("56", "ISLD".to_owned()),
        ] {
            if !has(tag) {
                body += &format!("{tag}={value}\x01");
            }
        }
        for field in fields.iter().filter(|field| !field.ends_with("=-")) {
            body += &format!("{field}\x01");
        }
        if msg_type == "A" && self.version == "FIXT" && !has("1137") {
            body += "1137=9\x01";
        }
        let length = body.len() as i64 + length_offset;
        let mut bytes = format!("8={begin}\x019={length}\x01{body}").into_bytes();
        let sum = checksum(&bytes).wrapping_add(sum_offset);
        bytes.extend(format!("10={sum:03}\x01").into_bytes());
        bytes
    }

    fn expect(&mut self, line: &str) {
        assert!(
            !self.out.sent.is_empty(),
            "no message; closed: {:?}",
            self.out.is_closed
        );
        let bytes = self.out.sent.remove(0);
        let frame = shared::frame(&bytes);
        let shown = String::from_utf8_lossy(&bytes).replace('\x01', "|");
        let mut parts = line.split('|');
        assert_eq!(
            parts.next().map(str::as_bytes),
            Some(frame.msg_type()),
            "{shown}"
        );
        for field in parts {
            let (tag, expected) = field.split_once('=').expect("tag=value");
            let found = frame.get(tag.parse().expect("a tag"));
            match expected {
                "-" => assert_eq!(found, None, "{tag}: {shown}"),
                "*" => assert!(found.is_some(), "{tag}: {shown}"),
                _ => assert_eq!(found, Some(expected.as_bytes()), "{tag}: {shown}"),
            }
        }
    }

    fn none(&self) {
        let shown = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).replace('\x01', "|");
        let sent: Vec<String> = self.out.sent.iter().map(shown).collect();
        assert!(sent.is_empty(), "{sent:#?}");
    }

    /// Changes the configuration.
    fn option(&mut self, option: &str) {
        let words: Vec<&str> = option.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let time = |at: usize| {
            let (hour, minute) = words[at].split_once(':').expect("a time");
            let part = |text: &str| text.parse::<u32>().expect("a number");
            part(hour) * 3600 + part(minute) * 60
        };
        let limit = |messages: u64| ThrottleLimit {
            messages: u32::try_from(messages).expect("small"),
            window: 1_000_000_000,
        };
        let config = &mut self.config;
        match words[0] {
            "initiator" => config.role = Role::Initiator,
            "authenticate" => config.authenticate = true,
            "reset.on.logon" => config.reset_on_logon = true,
            "reset.on.logout" => config.reset_on_logout = true,
            "reset.on.disconnect" => config.reset_on_disconnect = true,
            "next.expected" => config.next_expected = NextExpected::Send,
            "allow.missing.orig" => config.allow_missing_orig = MissingOrig::All,
            "resend.chunk" => config.resend_chunk = number(1),
            "early" => config.early_messages = number(1) as usize,
            "max.message.size" => config.max_message_size = number(1) as usize,
            "send.throttle" => config.send_throttle = Some(limit(number(1))),
            "throttle" => {
                config.throttle = Some(limit(number(1)));
                config.throttle_action = match words[2] {
                    "reject" => ThrottleAction::Reject,
                    "logout" => ThrottleAction::Logout,
                    _ => ThrottleAction::Delay,
                };
            }
            "cancel" => {
                config.cancel_on = match words[1] {
                    "both" => CancelOn::Both,
                    _ => CancelOn::Logout,
                };
                config.cancel_grace = number(2) as i64 * 1_000_000_000;
            }
            "schedule" => {
                let schedule = Schedule::daily(time(1), time(2)).expect("valid");
                let resets = words.get(3) == Some(&"reset");
                config.schedule = if resets {
                    schedule.resetting()
                } else {
                    schedule
                };
            }
            "numbers" => {
                self.numbers.next_in = number(1);
                self.numbers.next_out = number(2);
            }
            other => panic!("no option {other:?}"),
        }
    }

    /// Makes a call of the application, or checks what it can see. Returns false for other steps.
    fn call(&mut self, line: &str) -> bool {
        let now = self.now;
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "app" {
            let (id, error) = rest.split_once(" error ").unwrap_or((rest, ""));
            let sent = self.app(id);
            let shown = sent.map_or_else(|error| format!("{error:?}"), |_| String::new());
            assert!(
                shown.starts_with(error) && shown.is_empty() == error.is_empty(),
                "{shown}"
            );
            return true;
        }
        let (session, out) = self.session();
        match name {
            "logout" => session.logout(rest, now, out),
            "reset" => assert!(session.reset(now, out)),
            "disconnect" => session.disconnect(now, out),
            "drop" => session.disconnected(now, out),
            "connect" => self.connect(),
            "accept" => {
                session.authenticated(Authentication::Accept, now, out);
                self.pass(b"");
            }
            "refuse" => {
                let refusal = Authentication::Refuse {
                    text: Some(rest),
                    status: None,
                };
                session.authenticated(refusal, now, out);
            }
            "event" => self.expect_event(rest),
            "no" => {
                let name = rest.strip_prefix("event ").expect("an event");
                assert!(
                    out.events.iter().all(|event| !event.starts_with(name)),
                    "{:?}",
                    out.events
                );
            }
            "state" => assert_eq!(format!("{:?}", session.state()), rest),
            "numbers" => {
                let numbers = session.numbers();
                assert_eq!(format!("{} {}", numbers.next_in, numbers.next_out), rest);
            }
            "pause" => self.pause(rest.parse().expect("seconds")),
            _ => return false,
        }
        true
    }

    fn step(&mut self, line: &str) {
        if let Some(option) = line.strip_prefix("with ") {
            match option {
                "supported D" => self.config.supported = vec!["D".into()],
                "user-defined reject" => self.config.checks.unknown = Tags::Reject,
                "empty accept" => self.config.checks.have_values = false,
                other => self.option(other),
            }
            return;
        }
        if line.starts_with("app ") && self.session.is_none() {
            self.create();
        } else if self.session.is_none() {
            self.connect();
            if line == "connect" {
                return;
            }
        }
        if self.call(line) {
            return;
        }
        if let Some(message) = line.strip_prefix(">2 ") {
            let bytes = self.message(message);
            let First::Logon { sender, target, .. } = first_message(&bytes) else {
                panic!("not a Logon");
            };
            assert_eq!((sender, target), (&b"TW"[..], &b"ISLD"[..]));
            self.is_second_closed = self.session().0.state() != State::Idle;
        } else if let Some(message) = line.strip_prefix("> ") {
            let bytes = self.message(message);
            self.pass(&bytes);
        } else if let Some(message) = line.strip_prefix("< ") {
            self.expect(message);
        } else if let Some(seconds) = line.strip_prefix("wait ") {
            self.wait(seconds.parse().expect("seconds"));
        } else if let Some(count) = line.strip_prefix("handled ") {
            assert_eq!(self.handled, count.parse::<usize>().expect("a number"));
        } else {
            match line {
                "none" => self.none(),
                "open" => assert_eq!(self.out.is_closed, None),
                "closed" => {
                    self.none();
                    assert!(self.out.is_closed.is_some(), "still open");
                }
                "closed 2" => assert!(self.is_second_closed),
                other => panic!("no step {other:?}"),
            }
        }
    }
}

/// Runs a script; returns the failure with its line.
fn run(mut run: Run, script: &[(usize, &str)]) -> Result<(), String> {
    let version = run.version;
    for (number, line) in script {
        let line = match line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
        {
            Some((versions, _)) if !includes(versions, version) => continue,
            Some((_, rest)) => rest,
            None => line,
        };
        let step = std::panic::AssertUnwindSafe(|| run.step(line));
        if let Err(failure) = std::panic::catch_unwind(step) {
            let text = failure.downcast_ref::<String>().cloned().or_else(|| {
                failure
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
            });
            return Err(format!(
                "line {number}: {line}\n{}",
                text.unwrap_or_default()
            ));
        }
    }
    run.none();
    Ok(())
}

/// Runs all scripts of a text for all versions.
fn run_all(text: &'static str, make: fn(&'static str, &Arc<Dictionary>) -> Run) -> usize {
    let mut scripts: Vec<(&str, Vec<(usize, &str)>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if let Some(name) = line.strip_prefix("== ") {
            scripts.push((name, Vec::new()));
        } else if !line.is_empty() && !line.starts_with('#') {
            let (_, steps) = scripts.last_mut().expect("a script has begun");
            steps.push((index + 1, line));
        }
    }
    let mut failures = Vec::new();
    let mut count = 0;
    for version in VERSIONS {
        let dictionary = Arc::new(load(version));
        for (name, steps) in &scripts {
            let first = name
                .split(' ')
                .nth(1)
                .filter(|word| VERSIONS.contains(word));
            if first.is_some_and(|first| !includes(&format!("{first}+"), version)) {
                continue;
            }
            count += 1;
            if let Err(failure) = run(make(version, &dictionary), steps) {
                failures.push(format!("{name}, {version}: {failure}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} fail:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    count
}

#[test]
fn acceptor_follows_acceptance_definitions() {
    let count = run_all(include_str!("scripts.txt"), Run::new);
    assert!(count > 300, "{count} runs");
}

#[test]
fn session_follows_own_rules() {
    let count = run_all(include_str!("own.txt"), Run::own);
    assert!(count > 300, "{count} runs");
}
