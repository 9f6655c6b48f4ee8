// SPDX-License-Identifier: Apache-2.0
//! Scheduled round trips over the common encrypted protocols: TLS 1.3 over TCP and QUIC, over the loopback.
//!
//! Both ends are threads of this process, each pinned to a core, and neither sleeps. One connection carries all messages, as
//! one publication does. Messages have a fixed length, so that no framing is needed.

mod load;
mod quic;
mod tls;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use taran_bench::side::RunError;
use taran_core::affinity;
use taran_peers::bench::{conclude, end_with_parent};
use taran_peers::measured::Measured;

use load::Load;

/// Name in the certificate.
const SERVER_NAME: &str = "localhost";

#[derive(Parser)]
struct Arguments {
    /// Protocol of the connection
    #[arg(value_enum)]
    protocol: Protocol,
    /// Messages per second
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    /// Payload bytes of a message
    #[arg(long, default_value_t = 288)]
    length: usize,
    /// Duration of the measurement in milliseconds
    #[arg(long, default_value_t = 1_000)]
    measure_ms: u64,
    /// Duration of the warm-up in milliseconds
    #[arg(long, default_value_t = 500)]
    warmup_ms: u64,
    /// Cores of the client and of the server
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// TLS 1.3 over TCP without delay
    Tls,
    /// One bidirectional stream of QUIC
    Quic,
}

/// Both sides' configuration of TLS, with a certificate that is made for this run.
struct Keys {
    client: ClientConfig,
    server: ServerConfig,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    conclude(run(&arguments).map(Some))
}

fn run(arguments: &Arguments) -> Result<Measured, RunError> {
    let keys = keys().map_err(failure)?;
    let mut cores = arguments.cpus.iter().copied();
    let (client_core, server_core) = (cores.next(), cores.next());
    let stop = end_with_parent();
    let ended = Arc::new(AtomicBool::new(false));
    let mut load = Load::new(arguments.rate, arguments.length)?;
    let phases = [arguments.warmup_ms, arguments.measure_ms].map(Duration::from_millis);
    let server_ended = Arc::clone(&ended);
    let outcome = match arguments.protocol {
        Protocol::Tls => {
            let server = tls::Server::bind(keys.server).map_err(failure)?;
            let address = server.address().map_err(failure)?;
            let server = thread::spawn(move || {
                pin(server_core)?;
                server.echo(&server_ended).map_err(failure)
            });
            let outcome = pin(client_core)
                .and_then(|()| tls::run(address, keys.client, &mut load, phases, &stop));
            ended.store(true, Ordering::Relaxed);
            outcome.and(joined(server))
        }
        Protocol::Quic => {
            let (ready, address) = std::sync::mpsc::channel();
            let server = thread::spawn(move || {
                pin(server_core)?;
                quic::echo(keys.server, &ready, &server_ended)
            });
            let outcome = pin(client_core).and_then(|()| {
                let address = address
                    .recv()
                    .map_err(|_| RunError::Config("the QUIC server did not start".to_owned()));
                quic::run(address?, keys.client, &mut load, phases, &stop)
            });
            ended.store(true, Ordering::Relaxed);
            outcome.and(joined(server))
        }
    };
    outcome?;
    Ok(load.measured())
}

fn joined(server: thread::JoinHandle<Result<(), RunError>>) -> Result<(), RunError> {
    server.join().unwrap_or_else(|_| {
        Err(RunError::Config(
            "the server panicked, see above".to_owned(),
        ))
    })
}

fn pin(core: Option<usize>) -> Result<(), RunError> {
    core.map_or(Ok(()), |core| {
        affinity::pin_current_thread(core).map_err(failure)
    })
}

fn failure(error: impl std::fmt::Display) -> RunError {
    RunError::Config(error.to_string())
}

fn keys() -> Result<Keys, Box<dyn std::error::Error>> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([SERVER_NAME.to_owned()])?;
    let certificate: CertificateDer<'static> = cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let versions = [&rustls::version::TLS13];
    Ok(Keys {
        client: ClientConfig::builder_with_protocol_versions(&versions)
            .with_root_certificates(roots)
            .with_no_client_auth(),
        server: ServerConfig::builder_with_protocol_versions(&versions)
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())?,
    })
}
