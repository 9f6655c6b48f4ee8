// SPDX-License-Identifier: Apache-2.0
//! The Grafana dashboard of `packaging`: each of its queries gets data from a Prometheus that scrapes a live driver.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::metrics::Server;
use crate::process::{Directory, Driver, taran};
use crate::traffic::{Traffic, await_true};

/// A Prometheus process, killed when dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts with the configuration of `packaging`, for this exporter and with quick scrapes.
    fn start(directory: &Directory, packaging: &Path, exporter: &str) -> Prometheus {
        let configuration = std::fs::read_to_string(packaging.join("prometheus/prometheus.yml"))
            .expect("the configuration exists");
        let alerts = packaging.join("prometheus/alerts.yml");
        for part in ["127.0.0.1:9464", "scrape_interval: 5s", "- alerts.yml"] {
            assert!(configuration.contains(part), "{part}");
        }
        let configuration = configuration
            .replace("127.0.0.1:9464", exporter)
            .replace("scrape_interval: 5s", "scrape_interval: 1s")
            .replace("- alerts.yml", &format!("- {}", alerts.display()));
        let file = directory.file("prometheus.yml", &configuration);
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={port}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus can be run");
        Prometheus {
            child,
            address: port.to_string(),
        }
    }

    /// Returns the results of a query; `None` as long as Prometheus does not answer.
    fn query(&self, query: &str) -> Option<Vec<Value>> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!("GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let (_, body) = response.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        assert_ne!(answer["status"], "error", "{answer}");
        answer["data"]["result"].as_array().cloned()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs Prometheus: cargo xtask lint-packaging"]
fn dashboard_queries_get_data_from_prometheus() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let text = std::fs::read_to_string(packaging.join("grafana/taran.json"));
    let dashboard: Value = serde_json::from_str(&text.expect("the file exists")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries: Vec<String> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .map(|target| target["expr"].as_str().expect("a query").to_owned())
        .collect();
    assert!(queries.len() > 15, "{queries:?}");

    let (directory, files) = (Directory::new("panels"), Directory::new("prometheus"));
    let driver = Driver::start(directory.path(), &[]);
    let traffic = Traffic::over_udp(directory.path(), 1001, 3);
    // Limited, because nothing receives it.
    let limited = traffic
        .client
        .add_publication("aeron:ipc?term-length=64k", 7);
    let exporter = Server::start(
        taran(&["stat", "--listen", "127.0.0.1:0"]).env("AERON_DIR", directory.path()),
    );
    let prometheus = Prometheus::start(&files, &packaging, &exporter.address);
    for query in queries {
        let query = query
            .replace("$__rate_interval", "10s")
            .replace("$instance", &exporter.address);
        await_true(&format!("data for {query}"), || {
            let results = prometheus.query(&query);
            // The only driver is alive: the count of others is the zero that the query gives then.
            results.is_some_and(|results| !results.is_empty())
        });
    }
    drop((limited, traffic));
    driver.stop("TERM").assert_code(15);
}
