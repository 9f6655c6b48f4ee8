// SPDX-License-Identifier: Apache-2.0
//! Machine-readable counters: JSON, OpenMetrics text, and the same over HTTP, also for misbehaving clients.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::process::{Directory, Driver, run, taran};
use crate::traffic::Traffic;

/// Checks the text against the OpenMetrics format and returns the value of each sample.
#[track_caller]
pub(crate) fn check(text: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut families = HashSet::new();
    let mut family = (String::new(), String::new());
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            assert_eq!(words.len(), 3, "{line}");
            match words[0] {
                "TYPE" => {
                    assert!(families.insert(words[1].to_owned()), "twice: {line}");
                    family = (words[1].to_owned(), words[2].to_owned());
                }
                "UNIT" => assert!(
                    family.0 == words[1] && words[1].ends_with(&format!("_{}", words[2])),
                    "{line}"
                ),
                "HELP" => assert_eq!(family.0, words[1], "{line}"),
                other => panic!("{other} in {line}"),
            }
            continue;
        }
        assert!(!line.contains(char::is_control), "{line:?}");
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        let name = sample.split('{').next().expect("a name");
        let suffix = match family.1.as_str() {
            "counter" => "_total",
            "info" => "_info",
            "gauge" | "unknown" => "",
            other => panic!("type {other}"),
        };
        assert_eq!(name, format!("{}{suffix}", family.0), "{line}");
        if let Some(labels) = sample
            .strip_prefix(name)
            .filter(|labels| !labels.is_empty())
        {
            check_labels(labels);
        }
        let value: f64 = value.parse().expect("a number");
        assert!(
            samples.insert(sample.to_owned(), value).is_none(),
            "twice: {line}"
        );
    }
    samples
}

/// Parses `{name="value",...}` character by character. Within a value exactly quotes, backslashes and line feeds are
/// escaped, and no name occurs twice.
#[track_caller]
fn check_labels(text: &str) {
    let mut names = HashSet::new();
    let mut characters = text.chars().peekable();
    assert_eq!(characters.next(), Some('{'), "{text}");
    loop {
        let mut name = String::new();
        while let Some(character) = characters.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(character);
        }
        assert!(!name.is_empty() && names.insert(name), "{text}");
        assert_eq!(characters.next(), Some('='), "{text}");
        assert_eq!(characters.next(), Some('"'), "{text}");
        loop {
            match characters.next().expect("a value has an end") {
                '"' => break,
                '\\' => assert!(
                    matches!(characters.next(), Some('\\' | '"' | 'n')),
                    "{text}"
                ),
                _ => {}
            }
        }
        match characters.next() {
            Some(',') => {}
            Some('}') => break,
            other => panic!("{other:?} in {text}"),
        }
    }
    assert_eq!(characters.next(), None, "{text}");
}

#[test]
fn check_labels_rejects_malformed_labels() {
    check_labels(r#"{a="",b_2="\\ \" \n , } { ="}"#);
    for wrong in [
        "",
        "{}",
        r#"{a="b"#,
        r#"{a="b"}}"#,
        r#"{a="b",}"#,
        r#"{a="b"c="d"}"#,
        r#"{a="b",a="c"}"#,
        r#"{a="b"c"}"#,
        r#"{a="\t"}"#,
        r#"{a="\"}"#,
    ] {
        assert!(
            std::panic::catch_unwind(|| check_labels(wrong)).is_err(),
            "{wrong}"
        );
    }
}

/// The counter is in nanoseconds, the metric in seconds.
#[test]
fn cycle_time_metric_is_in_seconds() {
    let directory = Directory::new("units");
    let driver = Driver::start(directory.path(), &[]);
    let counted = || {
        let stat = &["stat", "--json", "-w", "false", "--identity", "^26$"];
        let outcome = run(taran(stat).env("AERON_DIR", directory.path()));
        let stat: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let counter = &stat["counters"][0];
        assert_eq!(counter["id"], 26);
        counter["value"].as_i64().unwrap() as f64 / 1e9
    };
    // The maximum cycle time only grows.
    let before = counted();
    let outcome = run(taran(&["stat", "--openmetrics"]).env("AERON_DIR", directory.path()));
    let metric = check(&outcome.stdout)["aeron_conductor_max_cycle_time_seconds"];
    let after = counted();
    assert!(
        before <= metric && metric <= after && after > 0.0,
        "{before} {metric} {after}"
    );
    driver.stop("TERM").assert_code(15);
}

#[test]
fn openmetrics_labels_with_special_characters_are_escaped() {
    let directory = Directory::new("labels");
    let driver = Driver::start(directory.path(), &[]);
    let client = taran::Client::builder()
        .aeron_dir(directory.path())
        .connect()
        .unwrap();
    let channel = "aeron:ipc?alias=a\"b\\c\r\x1b[2J\u{9b}\n},{x=\"\u{e9}";
    let _publication = client.add_publication(channel, 7).unwrap();
    let _counter = client.add_counter(1_001, b"", "a\"b\\c d\\").unwrap();
    let outcome = run(taran(&["stat", "--openmetrics"]).env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    let samples = check(&outcome.stdout);
    for part in [
        r#"channel="aeron:ipc?alias=a\"b\\c??[2J??},{x=\"?""#,
        r#"label="a\"b\\c d\\"}"#,
    ] {
        assert!(
            samples.keys().any(|sample| sample.contains(part)),
            "no {part} in {outcome:?}"
        );
    }
    drop(client);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_prints_counters_as_openmetrics() {
    let directory = Directory::new("openmetrics");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    let outcome = run(taran(&["stat", "--openmetrics"]).env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    let samples = check(&outcome.stdout);
    assert_eq!(samples["aeron_driver_alive"], 1.0);
    assert!(samples["aeron_sent_bytes_total"] > 0.0);
    for name in [
        "aeron_stream_position_bytes{counter=\"sub-pos\",",
        "aeron_stream_back_pressure_events_total{counter=\"snd-bpe\",",
        "aeron_stream_naks_sent_total{",
        "aeron_channel_status{counter=\"snd-channel\",",
        "aeron_channel_status{counter=\"rcv-channel\",",
        "aeron_local_socket_status{",
        "aeron_client_heartbeat_timestamp_seconds{",
        "aeron_driver_info{directory=",
    ] {
        assert!(
            samples.keys().any(|sample| sample.starts_with(name)),
            "no {name} in {outcome:?}"
        );
    }
    let channel = format!("stream_id=\"1001\",channel=\"{}\"}}", traffic.channel);
    assert!(
        samples.keys().any(|sample| sample.ends_with(&channel)),
        "{outcome:?}"
    );
    let filtered =
        run(taran(&["stat", "--openmetrics", "--stream", "^1001$"])
            .env("AERON_DIR", directory.path()));
    assert!(
        !check(&filtered.stdout).contains_key("aeron_sent_bytes_total"),
        "{filtered:?}"
    );
    drop(traffic);
    driver.stop("TERM").assert_code(15);
    let gone = run(taran(&["stat", "--openmetrics"]).env("AERON_DIR", directory.path()));
    gone.assert_code(1).assert_stderr("has shut down");
    assert_eq!(check(&gone.stdout)["aeron_driver_alive"], 0.0);
}

#[test]
fn stat_errors_and_version_print_json() {
    let directory = Directory::new("json");
    let driver = Driver::start(directory.path(), &[]);
    let outcome = run(taran(&["stat", "--json", "-w", "false", "--type", "^0$"])
        .env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    let stat: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(stat["pid"], driver.pid());
    assert_eq!(stat["counters"].as_array().unwrap().len(), 46);
    assert_eq!(stat["counters"][0]["label"], "Bytes sent");

    let refused = taran::Client::builder()
        .aeron_dir(directory.path())
        .connect()
        .unwrap()
        .add_publication("aeron:udp", 1);
    assert!(refused.is_err());
    let outcome = run(taran(&["errors", "--json"]).env("AERON_DIR", directory.path()));
    outcome.assert_code(0).assert_silent();
    let errors: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(errors[0]["observations"], 1);
    assert!(
        errors[0]["error"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    driver.stop("TERM").assert_code(15);

    let outcome = run(&mut taran(&["version", "--json"]));
    outcome.assert_code(0).assert_silent();
    let versions: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(versions["aeron"], "1.51.0");
    assert_eq!(versions["taran"], env!("CARGO_PKG_VERSION"));
}

/// A `taran stat --listen` process, killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Server {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("taran can be run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it says where it listens");
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|rest| rest.strip_suffix("/metrics"))
            .expect("it says where it listens")
            .to_owned();
        Server { child, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("it listens")
    }

    /// Sends a request and returns the status line, the headers and the body of the response.
    fn send(&self, request: &str) -> (String, String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it responds");
        let (head, body) = response.split_once("\r\n\r\n").expect("it speaks HTTP");
        let (status, headers) = head.split_once("\r\n").expect("it speaks HTTP");
        (status.to_owned(), headers.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> (String, String, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stat_listen_serves_metrics_over_http() {
    let directory = Directory::new("serve");
    let server = Server::start(
        taran(&["stat", "--listen", "127.0.0.1:0", "-t", "1"]).env("AERON_DIR", directory.path()),
    );
    let (status, _, body) = server.get("/metrics");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(body.contains("no driver is running"), "{body}");

    let driver = Driver::start(directory.path(), &[]);
    let (status, headers, body) = server.get("/metrics?name=x");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(
        headers.contains(
            "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
        ),
        "{headers}"
    );
    assert!(
        headers.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{headers}"
    );
    assert_eq!(check(&body)["aeron_driver_alive"], 1.0);
    let (status, _, body) = server.send("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", ""));
    assert_eq!(server.get("/").0, "HTTP/1.1 200 OK");
    assert_eq!(server.get("/other").0, "HTTP/1.1 404 Not Found");
    let (status, headers, _) = server.send("POST /metrics HTTP/1.1\r\n\r\n");
    assert_eq!(status, "HTTP/1.1 405 Method Not Allowed");
    assert!(headers.contains("Allow: GET, HEAD"), "{headers}");

    // A restarted driver is found.
    driver.stop("TERM").assert_code(15);
    let driver = Driver::start(directory.path(), &[]);
    let (_, _, body) = server.get("/metrics");
    assert!(
        body.contains(&format!("pid=\"{}\"", driver.pid())),
        "{body}"
    );
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_listen_with_scraper_for_prometheus_text_sends_it() {
    let directory = Directory::new("text");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    let server = Server::start(
        taran(&["stat", "--listen", "127.0.0.1:0"]).env("AERON_DIR", directory.path()),
    );
    let request = "GET /metrics HTTP/1.1\r\nAccept: text/plain;version=0.0.4\r\n\r\n";
    let (status, headers, body) = server.send(request);
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(
        headers.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{headers}"
    );
    for line in [
        "# TYPE aeron_sent_bytes_total counter\n",
        "# TYPE aeron_driver_info gauge\n",
        "\naeron_driver_alive 1\n",
    ] {
        assert!(body.contains(line), "no {line:?} in {body}");
    }
    assert!(
        !body.contains("# EOF") && !body.contains("# UNIT"),
        "{body}"
    );
    if let Some(complaints) = promtool_check(&body) {
        assert_eq!(complaints, "");
    }
    drop(traffic);
    driver.stop("TERM").assert_code(15);
}

/// Returns what `promtool check metrics` says about a text; `None` without promtool.
fn promtool_check(text: &str) -> Option<String> {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let output = promtool.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn stat_with_several_directories_labels_their_samples() {
    let (first, second, missing) = (
        Directory::new("first"),
        Directory::new("second"),
        Directory::new("missing"),
    );
    let drivers = [
        Driver::start(first.path(), &[]),
        Driver::start(second.path(), &[]),
    ];
    let paths: Vec<String> = [&first, &second, &missing]
        .map(|directory| directory.path().display().to_string())
        .into();
    let both = [
        "stat",
        "--openmetrics",
        "-d",
        &paths[0],
        "--also",
        &paths[1],
    ];
    let outcome = run(&mut taran(&both));
    outcome.assert_code(0).assert_silent();
    let samples = check(&outcome.stdout);
    for path in &paths[..2] {
        let sample = |name: &str| samples[&format!("{name}{{directory=\"{path}\"}}")];
        assert_eq!(sample("aeron_driver_alive"), 1.0);
        assert!(sample("aeron_mapped_bytes") > 0.0);
    }

    let server = Server::start(
        taran(&[
            "stat",
            "--listen",
            "127.0.0.1:0",
            "-t",
            "1",
            "-d",
            &paths[0],
        ])
        .args(["--also", &paths[1], "--also", &paths[2]]),
    );
    let (status, _, body) = server.get("/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let samples = check(&body);
    let alive = |path: &str| samples[&format!("aeron_driver_alive{{directory=\"{path}\"}}")];
    assert_eq!(
        (alive(&paths[0]), alive(&paths[1]), alive(&paths[2])),
        (1.0, 1.0, 0.0)
    );
    run(&mut taran(&["stat", "--also", &paths[0]])).assert_code(2);
    for driver in drivers {
        driver.stop("TERM").assert_code(15);
    }
}

/// Each metric that dashboard and alerts name is one that a driver with traffic has.
#[test]
fn dashboard_and_alerts_name_metrics_that_exist() {
    let packaging = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let mut named = HashSet::new();
    for file in ["grafana/taran.json", "prometheus/alerts.yml"] {
        let text = std::fs::read_to_string(packaging.join(file)).expect("the file exists");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let metrics = words.filter(|word| word.starts_with("aeron_"));
        named.extend(metrics.map(str::to_owned));
    }
    assert!(named.len() > 10, "{named:?}");

    let directory = Directory::new("dashboard");
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    let outcome = run(taran(&["stat", "--openmetrics"]).env("AERON_DIR", directory.path()));
    let samples = check(&outcome.stdout);
    let exist: HashSet<&str> = samples
        .keys()
        .filter_map(|sample| sample.split('{').next())
        .collect();
    for metric in named {
        assert!(exist.contains(metric.as_str()), "no metric {metric}");
    }
    drop(traffic);
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_listen_with_misbehaving_clients_serves_others() {
    let directory = Directory::new("hostile");
    let driver = Driver::start(directory.path(), &[]);
    let server = Server::start(
        taran(&["stat", "--listen", "127.0.0.1:0"]).env("AERON_DIR", directory.path()),
    );
    let (status, _, _) = server.send("nonsense\r\n\r\n");
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    let many = "X: y\r\n".repeat(1000);
    let (status, _, _) = server.send(&format!("GET / HTTP/1.1\r\n{many}\r\n"));
    assert!(status.starts_with("HTTP/1.1 431 "), "{status}");
    // One client that disconnects without a request, and one that sends a request but never reads the response.
    server.connect().shutdown(Shutdown::Both).unwrap();
    let mut non_reading = server.connect();
    non_reading
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .unwrap();
    // Many more connections than are served at a time, each with an incomplete request.
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    // A new client with a complete request is served although none of the others has disconnected.
    assert_eq!(server.get("/metrics").0, "HTTP/1.1 200 OK");
    let targets = ["http://127.0.0.1/metrics", "/metrics?collect[]=x"];
    for target in targets {
        assert_eq!(server.get(target).0, "HTTP/1.1 200 OK", "{target}");
    }
    drop((non_reading, slow));
    driver.stop("TERM").assert_code(15);
}

#[test]
fn stat_listen_at_invalid_address_fails() {
    for address in ["256.0.0.1:1", "nonsense", "203.0.113.1:9464"] {
        run(&mut taran(&["stat", "--listen", address]))
            .assert_code(1)
            .assert_stderr(address)
            .assert_stderr("--listen");
    }
}
