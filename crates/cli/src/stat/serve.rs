// SPDX-License-Identifier: Apache-2.0
//! HTTP server for metrics.

use super::exposition::Format;
use super::filter::Filter;
use super::metrics;
use crate::attach::{self, AttachError, Attached, Target};
use crate::failure::Failure;
use crate::http::{self, Limits, Reply, Request, Response};
use crate::output;

const LIMITS: Limits = Limits {
    connections: 8,
    request_bytes: 8 * 1024,
};

/// Serves metrics until the process ends.
pub(super) fn run(address: &str, targets: Vec<Target>, filter: Filter) -> Result<(), Failure> {
    let listener = http::listen(address)?;
    let local = listener.local_addr()?;
    output::text(&format!("listening on http://{local}/metrics\n"))?;
    let server = MetricsServer { targets, filter };
    http::serve(&listener, LIMITS, move |request| {
        Reply::Response(server.response(request))
    })
}

/// The metrics server: the drivers to read and the counters to include.
struct MetricsServer {
    targets: Vec<Target>,
    filter: Filter,
}

impl MetricsServer {
    fn response(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/metrics" => {
                let format = Format::for_accept(request.header("Accept").as_deref());
                match self.metrics(format) {
                    Ok(text) => Response {
                        content_type: format.content_type(),
                        ..Response::text("200 OK", text)
                    },
                    Err(error) => Response::text("503 Service Unavailable", format!("{error}\n")),
                }
            }
            "/" => Response::text("200 OK", "the metrics are at /metrics\n"),
            _ => Response::text("404 Not Found", "not found; the metrics are at /metrics\n"),
        }
    }

    /// Returns the metrics of all drivers. An error is that of an only driver that cannot be read.
    fn metrics(&self, format: Format) -> Result<String, AttachError> {
        if let [target] = &self.targets[..] {
            let attached = Attached::open(target)?;
            return Ok(metrics::report(&attached, &self.filter, format));
        }
        let drivers = attach::open_all(&self.targets);
        Ok(metrics::report_all(&drivers, &self.filter, format))
    }
}
