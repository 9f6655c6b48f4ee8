// SPDX-License-Identifier: Apache-2.0
//! `taran console` over HTTP: routes, headers, host, token, and what its event stream tells of drivers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use taran::{Client, StreamKey, counter_type};

use crate::process::{Directory, Driver, run, taran};
use crate::traffic::{Traffic, await_true};

/// Time limit for anything that a console does.
const TIMEOUT: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef-_XYZ";

/// A `taran console` process, killed when dropped.
struct Console {
    child: Child,
    address: String,
    output: BufReader<std::process::ChildStdout>,
}

struct Response {
    status: String,
    headers: String,
    body: String,
}

impl Console {
    fn start(arguments: &[&str]) -> Console {
        Console::start_at("127.0.0.1:0", arguments)
    }

    fn start_at(address: &str, arguments: &[&str]) -> Console {
        Console::start_every("50", address, arguments)
    }

    fn start_every(interval: &str, address: &str, arguments: &[&str]) -> Console {
        let mut command: Command = taran(&["console", "--listen", address, "-u", interval]);
        command.args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("taran can be run");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output
            .read_line(&mut line)
            .expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|rest| rest.strip_suffix('/'));
        Console {
            child,
            address: address.expect("it says where it listens").to_owned(),
            output,
        }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().expect("it has a port")
    }

    /// Returns the token that the console prints.
    fn token(&mut self) -> String {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("it prints the token");
        let (_, token) = line.trim().split_once("?token=").expect("a token");
        assert_eq!(token.len(), 32, "{line}");
        token.to_owned()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    }

    fn send(&self, request: &str) -> Response {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it responds");
        let (head, body) = response.split_once("\r\n\r\n").expect("it speaks HTTP");
        let (status, headers) = head.split_once("\r\n").expect("it speaks HTTP");
        Response {
            status: status.to_owned(),
            headers: headers.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Sends a GET request with further header lines.
    fn get(&self, path: &str, headers: &str) -> Response {
        let address = &self.address;
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n"
        ))
    }

    fn status(&self, path: &str, headers: &str) -> String {
        let status = self.get(path, headers).status;
        status.trim_start_matches("HTTP/1.1 ").to_owned()
    }

    /// Returns the status of a response without its rest.
    fn begins(&self, path: &str) -> String {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .expect("it responds");
        let (_, status) = line.trim().split_once(' ').expect("it speaks HTTP");
        status.to_owned()
    }

    /// Follows the event stream.
    fn events(&self) -> Events {
        let mut stream = self.connect();
        let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(
                lines.read_line(&mut head).expect("it responds") > 0,
                "{head}"
            );
        }
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/event-stream"), "{head}");
        Events { lines }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// Returns name and data of the next event.
    fn next(&mut self) -> (String, Value) {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).expect("an event comes");
            assert!(length > 0, "the stream has ended");
            if line == "\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let field = |name: &str| {
            let value = lines.iter().find_map(|line| line.strip_prefix(name));
            value
                .unwrap_or_else(|| panic!("no {name} in {lines:?}"))
                .to_owned()
        };
        let data = serde_json::from_str(&field("data: ")).expect("JSON");
        (field("event: "), data)
    }

    /// Returns the first sample that meets a condition.
    fn sample(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        await_true(what, || {
            let (name, data) = self.next();
            assert_eq!(name, "sample");
            last = data;
            condition(&last)
        });
        last
    }
}

fn path(directory: &Directory) -> &str {
    directory.path().to_str().expect("the path is text")
}

fn state(sample: &Value, driver: usize) -> &str {
    sample["drivers"][driver]["state"]["kind"]
        .as_str()
        .expect("a state")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn console_serves_page_files_and_headers() {
    let directory = Directory::new("console-routes");
    let console = Console::start(&["-d", path(&directory)]);
    let page = console.get("/", "");
    assert_eq!(page.status, "HTTP/1.1 200 OK");
    for header in [
        "Content-Type: text/html; charset=utf-8\r\n",
        "Cache-Control: no-store\r\n",
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; ",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff\r\n",
        "Referrer-Policy: no-referrer\r\n",
        "X-Frame-Options: DENY\r\n",
    ] {
        assert!(
            page.headers.contains(header),
            "no {header:?} in {}",
            page.headers
        );
    }
    assert!(!page.headers.contains("unsafe"), "{}", page.headers);
    // Every file that the page names, and that those name, is served, and none is elsewhere.
    let mut names = vec!["/".to_owned()];
    let mut at = 0;
    while at < names.len() {
        let response = console.get(&names[at], "");
        assert_eq!(response.status, "HTTP/1.1 200 OK", "{}", names[at]);
        let without_namespace = response.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_namespace.contains("://"), "{}", names[at]);
        for word in response.body.split(['"', '\'']) {
            let name = word.trim_start_matches('.');
            let is_file = name.starts_with('/')
                && [".js", ".css", ".svg"]
                    .iter()
                    .any(|end| name.ends_with(end));
            if is_file && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        at += 1;
    }
    assert!(names.len() > 10, "{names:?}");

    let head = console.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(
        (head.status.as_str(), head.body.as_str()),
        ("HTTP/1.1 200 OK", "")
    );
    assert_eq!(console.status("/other", ""), "404 Not Found");
    assert_eq!(console.status("/../console.css", ""), "404 Not Found");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let refused = console.send(&format!("{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(
            refused.status, "HTTP/1.1 405 Method Not Allowed",
            "{method}"
        );
    }
    assert_eq!(
        console.send("nonsense\r\n\r\n").status,
        "HTTP/1.1 400 Bad Request"
    );
    let long = format!("X: {}\r\n", "y".repeat(40_000));
    assert!(console.get("/", &long).status.contains("431"));
}

#[test]
fn console_answers_only_its_own_names_and_pages() {
    let directory = Directory::new("console-host");
    let mut console = Console::start(&["-d", path(&directory), "--host", "desk.example"]);
    // A name is for other machines, so that there is a token.
    let bearer = format!("Authorization: Bearer {}\r\n", console.token());
    assert_eq!(console.status("/state.json", ""), "401 Unauthorized");
    let status = |host: &str| {
        let response = console.send(&format!("GET /state.json HTTP/1.1\r\n{host}{bearer}\r\n"));
        response.status.trim_start_matches("HTTP/1.1 ").to_owned()
    };
    for host in ["localhost:1", "127.0.0.1", "[::1]:8080", "desk.example"] {
        assert_eq!(status(&format!("Host: {host}\r\n")), "200 OK", "{host}");
    }
    for host in [
        "Host: evil.example\r\n",
        "",
        "Host: localhost\r\nHost: evil.example\r\n",
    ] {
        assert_eq!(status(host), "421 Misdirected Request", "{host}");
    }
    for (site, expected) in [("same-origin", "200 OK"), ("cross-site", "403 Forbidden")] {
        let header = format!("{bearer}Sec-Fetch-Site: {site}\r\n");
        assert_eq!(console.status("/state.json", &header), expected);
        // A link may lead to the page.
        assert_eq!(console.status("/", &header), "200 OK");
    }
}

#[test]
fn console_with_token_refuses_all_else() {
    let directory = Directory::new("console-token");
    let file = directory.file("token", &format!("{TOKEN}\n"));
    let set_mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, permissions).expect("the mode can be set");
    };
    let token_file = ["--token-file", file.to_str().expect("the path is text")];
    set_mode(0o644);
    run(taran(&["console", "--listen", "127.0.0.1:0"]).args(token_file))
        .assert_code(1)
        .assert_stderr(
            "has mode 0644, so others than its owner have access to the token: 'chmod 600 ",
        );
    set_mode(0o600);
    let console = Console::start(&["-d", path(&directory), token_file[0], token_file[1]]);
    let port = console.port().to_owned();
    let login = console.get(&format!("/?token={TOKEN}"), "");
    assert_eq!(login.status, "HTTP/1.1 303 See Other");
    assert!(login.headers.contains("Location: /\r\n"));
    let name = format!("Set-Cookie: taran-console-{port}=");
    let (_, session) = login.headers.split_once(&name).expect("a cookie");
    let (session, attributes) = session.split_once(';').expect("attributes");
    assert!(attributes.starts_with(" Path=/; HttpOnly; SameSite=Strict\r\n"));
    // The cookie goes to other servers of this host, too.
    assert!(session.len() == 32 && !session.contains(TOKEN), "{session}");
    let cookie = |value: &str| format!("Cookie: a=b; taran-console-{port}={value}\r\n");
    for (headers, expected) in [
        (String::new(), "401 Unauthorized"),
        (cookie(TOKEN), "401 Unauthorized"),
        (cookie(&session[1..]), "401 Unauthorized"),
        (
            format!("Authorization: Bearer {session}\r\n"),
            "401 Unauthorized",
        ),
        (
            format!("Authorization: Bearer x{TOKEN}\r\n"),
            "401 Unauthorized",
        ),
        (cookie(session), "200 OK"),
        (format!("Authorization: Bearer {TOKEN}\r\n"), "200 OK"),
    ] {
        for path in ["/", "/state.json"] {
            assert_eq!(console.status(path, &headers), expected, "{path} {headers}");
        }
        if expected != "200 OK" {
            assert_eq!(console.status("/events", &headers), expected);
        }
    }
    // The refused page asks for the token and tells nothing else.
    let asks = console.get("/", "");
    assert!(asks.body.contains("name=\"token\"") && !asks.body.contains("streams"));
    let wrong = console.get("/?token=nonsense", "");
    assert_eq!(wrong.status, "HTTP/1.1 401 Unauthorized");

    for (text, reason) in [
        ("short", "holds no token"),
        ("with spaces in it, so", "holds no token"),
    ] {
        std::fs::write(&file, text).expect("the file can be written");
        run(taran(&["console", "--listen", "127.0.0.1:0"]).args(token_file))
            .assert_code(1)
            .assert_stderr(reason);
    }
}

#[test]
fn console_at_other_address_prints_a_token_once() {
    let directory = Directory::new("console-open");
    let mut console = Console::start_at("0.0.0.0:0", &["-d", path(&directory)]);
    let token = console.token();
    let host = format!("Host: 127.0.0.1:{}\r\n", console.port());
    let status = |headers: &str| {
        let request = format!("GET /state.json HTTP/1.1\r\n{host}{headers}\r\n");
        console.send(&request).status
    };
    assert_eq!(status(""), "HTTP/1.1 401 Unauthorized");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(status(&bearer), "HTTP/1.1 200 OK");
}

#[test]
fn console_without_token_refuses_what_proxies_send() {
    let directory = Directory::new("console-proxy");
    let console = Console::start(&["-d", path(&directory)]);
    for header in [
        "X-Forwarded-For: 192.0.2.7\r\n",
        "forwarded: for=192.0.2.7\r\n",
        "Via: 1.1 desk.example\r\n",
    ] {
        for path in ["/", "/state.json", "/events"] {
            let refused = console.get(path, header);
            assert_eq!(refused.status, "HTTP/1.1 403 Forbidden", "{path} {header}");
            assert!(refused.body.contains("--token-file"), "{}", refused.body);
        }
    }
    assert_eq!(console.status("/state.json", ""), "200 OK");
}

#[test]
fn console_answers_beside_clients_that_do_not_close() {
    let directory = Directory::new("console-open-ends");
    let console = Console::start(&["-d", path(&directory)]);
    // More than there are connections, each with its response, none closed by the client.
    let open_ends: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = console.connect();
            stream
                .write_all(b"GET /state.json HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                .expect("it reads");
            let mut status = [0; 12];
            stream.read_exact(&mut status).expect("it responds");
            assert_eq!(&status, b"HTTP/1.1 421", "connection {number}");
            stream
        })
        .collect();
    assert_eq!(console.status("/state.json", ""), "200 OK");
    drop(open_ends);
}

#[test]
fn console_frees_the_place_of_a_closed_page_between_samples() {
    let directory = Directory::new("console-places");
    let console = Console::start_every("600s", "127.0.0.1:0", &["-d", path(&directory)]);
    let followers: Vec<Events> = (0..32).map(|_| console.events()).collect();
    assert_eq!(console.begins("/events"), "503 Service Unavailable");
    drop(followers);
    await_true("a place", || console.begins("/events") == "200 OK");
}

#[test]
fn console_shows_a_directory_with_several_names_once() {
    let (directory, other) = (
        Directory::new("console-names"),
        Directory::new("console-name"),
    );
    std::fs::create_dir_all(directory.path()).expect("a directory");
    std::os::unix::fs::symlink(directory.path(), other.path()).expect("a link");
    let absolute = path(&directory);
    let dotted = format!("{absolute}/.");
    let console = Console::start(&[
        "-d",
        absolute,
        "--also",
        &dotted,
        "--also",
        path(&other),
        "--also",
        absolute,
    ]);
    let state = console.get("/state.json", "");
    let state: Value = serde_json::from_str(&state.body).expect("JSON");
    assert_eq!(state["drivers"].as_array().map(Vec::len), Some(1));
    std::fs::remove_file(other.path()).expect("the link was made");
}

#[test]
fn console_at_used_port_names_the_remedy() {
    let directory = Directory::new("console-port");
    let console = Console::start(&["-d", path(&directory)]);
    run(&mut taran(&["console", "--listen", &console.address]))
        .assert_code(1)
        .assert_stderr("Address already in use")
        .assert_stderr("free port");
}

#[test]
fn console_follows_a_driver_through_its_life() {
    let directory = Directory::new("console-life");
    let console = Console::start(&["-d", path(&directory)]);
    let mut events = console.events();
    let (name, history) = events.next();
    assert_eq!(name, "history");
    assert_eq!(history["interval_ms"], 50);
    let absent = events.sample("a sample", |_| true);
    assert_eq!(state(&absent, 0), "absent");
    let reason = text(&absent["drivers"][0]["state"]["text"]);
    assert!(
        reason.contains("no driver is running") && reason.contains("'taran driver'"),
        "{reason}"
    );

    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    // The client adds its name to its counter a moment later.
    let moved = events.sample("a stream and a name", |sample| {
        state(sample, 0) == "alive"
            && sample["drivers"][0]["streams"][0]["subscribers"][0].is_object()
            && sample["drivers"][0]["clients"][0]["name"] != ""
    });
    let shown = &moved["drivers"][0];
    assert_eq!(shown["info"]["pid"], driver.pid());
    let stream = &shown["streams"][0];
    assert_eq!(stream["stream_id"], 1001);
    assert_eq!(text(&stream["channel"]), traffic.channel);
    let client = traffic.client.client_id();
    assert_eq!(stream["publisher"]["client_id"], client);
    assert_eq!(stream["subscribers"][0]["client_id"], client);
    assert_eq!(shown["clients"][0]["client_id"], client);
    let process = format!("[{}]", std::process::id());
    assert!(text(&shown["clients"][0]["name"]).ends_with(&process));

    // Messages that nothing reads: the lag, then the verdict.
    let stuck = events.sample("a stuck subscriber", |sample| {
        // Until the publication is held back: its limit still rises while messages are on their way.
        while traffic.publication.offer(&[7; 1_024]).is_ok() {}
        sample["attention"][0]["cause"] == "subscriber"
            && sample["attention"][0]["severity"] == "critical"
    });
    let entry = &stuck["attention"][0];
    assert!(
        text(&entry["text"]).contains("limited by subscriber"),
        "{entry}"
    );
    assert_eq!(
        text(&entry["command"]),
        format!("taran backlog -d {}", path(&directory))
    );
    assert_eq!(entry["stream"], stream["id"]);
    assert!(stuck["drivers"][0]["streams"][0]["lag"].as_i64() > Some(1_024));

    // Killed: its last values stay, with the time of its last heartbeat.
    driver.stop("KILL");
    let dead = events.sample("the death", |sample| state(sample, 0) == "dead");
    assert!(text(&dead["drivers"][0]["state"]["text"]).contains("was killed or has crashed"));
    assert_eq!(dead["drivers"][0]["streams"][0]["id"], stream["id"]);
    assert_eq!(dead["attention"][0]["cause"], "driver");
    drop(traffic);

    // The next driver of the directory is another one, with streams of its own.
    let driver = Driver::start(directory.path(), &[]);
    let _traffic = Traffic::over_ipc(directory.path(), 7, 1);
    let back = events.sample("the next driver", |sample| {
        state(sample, 0) == "alive" && sample["drivers"][0]["streams"][0]["stream_id"] == 7
    });
    assert_eq!(back["drivers"][0]["info"]["pid"], driver.pid());
    assert_ne!(back["drivers"][0]["streams"][0]["id"], stream["id"]);
    driver.stop("TERM").assert_code(15);
    events.sample("the end", |sample| state(sample, 0) == "shut_down");
}

#[test]
fn console_gives_new_pages_the_last_minutes() {
    let directory = Directory::new("console-history");
    let driver = Driver::start(directory.path(), &[]);
    let mut traffic = Traffic::over_ipc(directory.path(), 5, 1);
    let console = Console::start(&["-d", path(&directory)]);
    let mut first = console.events();
    first.next();
    // Samples that were read late may all be from before an offer: until one shows the traffic, and there are five.
    let mut samples = 0;
    let mut has_rate = false;
    while samples < 5 || !has_rate {
        traffic.offer(&[7; 100]);
        let (_, sample) = first.next();
        samples += 1;
        let streams = sample["drivers"][0]["streams"].as_array();
        let mut rates = streams.into_iter().flatten().map(|stream| &stream["rate"]);
        has_rate |= rates.any(|rate| rate.as_f64() > Some(0.0));
        assert!(samples < 300, "no sample shows the traffic: {sample}");
    }
    let (name, history) = console.events().next();
    assert_eq!(name, "history");
    let times = history["times"].as_array().expect("times");
    assert!(times.len() >= 5, "{history}");
    let streams = history["streams"].as_object().expect("streams");
    let series = streams.values().next().expect("a stream");
    for name in ["rate", "lag", "naks"] {
        assert_eq!(
            series[name].as_array().map(Vec::len),
            Some(times.len()),
            "{name}"
        );
    }
    let rates = series["rate"].as_array().expect("rates");
    assert!(
        rates.iter().any(|rate| rate.as_u64() > Some(0)),
        "{rates:?}"
    );
    driver.stop("TERM").assert_code(15);
}

#[test]
fn console_of_unusable_files_shows_typed_states() {
    let (foreign, damaged, silent) = (
        Directory::new("console-foreign"),
        Directory::new("console-damaged"),
        Directory::new("console-silent"),
    );
    std::fs::create_dir_all(damaged.path()).expect("a directory");
    let noise: Vec<u8> = (0..300_000_u32).map(|n| (n * 31 % 251) as u8).collect();
    std::fs::write(damaged.path().join("cnc.dat"), noise).expect("a file");
    let (region, _cnc) = crate::process::forge(silent.path(), 1_000);
    let (_other, other_cnc) = crate::process::forge(foreign.path(), 1_000);
    // A later major version.
    other_cnc
        .header
        .version
        .store(0x0100_0000, std::sync::atomic::Ordering::Release);
    let console = Console::start(&[
        "-d",
        path(&foreign),
        "--also",
        path(&damaged),
        "--also",
        path(&silent),
    ]);
    let mut events = console.events();
    events.next();
    let sample = events.sample("a sample", |_| true);
    assert_eq!(state(&sample, 0), "foreign");
    assert!(
        ["foreign", "unreadable"].contains(&state(&sample, 1)),
        "{sample}"
    );
    assert_eq!(state(&sample, 2), "silent");
    assert_eq!(sample["drivers"][2]["state"]["since_ms"], 1_000);
    assert_eq!(sample["attention"].as_array().map(Vec::len), Some(3));
    // Random bytes in the counters, while the console reads them.
    let mut seed = 7_u64;
    for round in 0..20 {
        for offset in (4_096..region.len() - 8).step_by(64) {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(round);
            region.write(offset, &seed.to_le_bytes());
        }
        assert_eq!(events.next().0, "sample");
    }
    assert_eq!(console.status("/state.json", ""), "200 OK");
}

#[test]
fn console_with_many_followers_refuses_more_and_serves_the_page() {
    let directory = Directory::new("console-followers");
    let console = Console::start(&["-d", path(&directory)]);
    let followers: Vec<Events> = (0..32).map(|_| console.events()).collect();
    let refused = console.get("/events", "");
    assert_eq!(refused.status, "HTTP/1.1 503 Service Unavailable");
    assert!(refused.headers.contains("Retry-After: 5\r\n"));
    assert_eq!(console.status("/", ""), "200 OK");
    drop(followers);
    await_true("a place", || console.begins("/events") == "200 OK");
}

#[test]
fn console_with_many_streams_shows_the_one_that_needs_attention() {
    let directory = Directory::new("console-streams");
    let driver = Driver::start(directory.path(), &[]);
    let client = Client::builder().aeron_dir(directory.path()).connect();
    let client = client.expect("the driver takes clients");
    // The counters of publications, without their logs, which would take 200 MB. Streams are ordered by session id: these come
    // before the one that needs attention.
    let _others: Vec<_> = (0..1_001)
        .map(|number| {
            let key = StreamKey {
                registration_id: i64::from(number),
                session_id: i32::MIN + number,
                stream_id: number,
                channel: "aeron:ipc".into(),
            };
            let label = format!("pub-lmt: {number} {} {number} aeron:ipc", key.session_id);
            let added = client.add_counter(counter_type::PUBLISHER_LIMIT, &key.encode(), &label);
            added.expect("a counter")
        })
        .collect();
    let traffic = Traffic::over_ipc(directory.path(), 1, 1);
    let console = Console::start(&["-d", path(&directory)]);
    let mut events = console.events();
    events.next();
    // Until the publication is held back by its subscription, which reads nothing.
    let sample = events.sample("a stuck subscriber", |sample| {
        while traffic.publication.offer(&[7; 1_024]).is_ok() {}
        sample["attention"][0]["cause"] == "subscriber"
    });
    let shown = sample["drivers"][0]["streams"].as_array().expect("streams");
    assert_eq!(shown.len(), 1_000);
    assert_eq!(sample["drivers"][0]["streams_omitted"], 2);
    let needed = &sample["attention"][0]["stream"];
    assert!(needed.is_u64() && shown.iter().any(|stream| stream["id"] == *needed));
    driver.stop("TERM").assert_code(15);
}
