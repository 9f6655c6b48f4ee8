// SPDX-License-Identifier: Apache-2.0
//! QUIC by `quinn`, one bidirectional stream, each end on a runtime of its own with one thread.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use taran_bench::side::RunError;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::load::Load;
use super::{SERVER_NAME, failure};

/// Bytes that one read takes.
const READ_LENGTH: usize = 65_536;

/// Sends the bytes of one stream back until the flag is set. Sends its address first.
pub(crate) fn echo(
    config: rustls::ServerConfig,
    ready: &Sender<SocketAddr>,
    ended: &AtomicBool,
) -> Result<(), RunError> {
    let crypto = QuicServerConfig::try_from(config).map_err(failure)?;
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    runtime()?.block_on(async {
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into());
        let endpoint = endpoint.map_err(failure)?;
        let _ = ready.send(endpoint.local_addr().map_err(failure)?);
        let echo = async {
            let Some(incoming) = endpoint.accept().await else {
                return;
            };
            let Ok(connection) = incoming.await else {
                return;
            };
            let Ok((mut sending, mut receiving)) = connection.accept_bi().await else {
                return;
            };
            let mut buffer = vec![0; READ_LENGTH];
            // The client closes the connection after its last phase.
            while let Ok(Some(length)) = receiving.read(&mut buffer).await {
                if sending.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        };
        let spin = async {
            while !ended.load(Ordering::Relaxed) {
                yield_now().await;
            }
        };
        tokio::select! {
            () = echo => {}
            () = spin => {}
        }
        Ok(())
    })
}

/// Runs the phases of the load over a connection.
pub(crate) fn run(
    address: SocketAddr,
    config: rustls::ClientConfig,
    load: &mut Load,
    phases: [Duration; 2],
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let crypto = QuicClientConfig::try_from(config).map_err(failure)?;
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    runtime()?.block_on(async {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).map_err(failure)?;
        let connecting = endpoint.connect_with(config, address, SERVER_NAME);
        let connection = connecting.map_err(failure)?.await.map_err(failure)?;
        let (mut sending, mut receiving) = connection.open_bi().await.map_err(failure)?;
        for phase in phases {
            load.begin(phase);
            run_phase(load, &mut sending, &mut receiving, stop).await?;
            load.end()?;
        }
        close(&connection, &endpoint).await;
        Ok(())
    })
}

async fn run_phase(
    load: &mut Load,
    sending: &mut SendStream,
    receiving: &mut RecvStream,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let load = RefCell::new(load);
    let send = async {
        let mut due = Vec::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            {
                let mut load = load.borrow_mut();
                if load.is_done() {
                    return Ok(());
                }
                due.clear();
                due.extend_from_slice(load.due());
            }
            if !due.is_empty() {
                sending.write_all(&due).await.map_err(failure)?;
            }
            // The runtime looks for datagrams and expired timers.
            yield_now().await;
        }
    };
    let receive = async {
        let mut buffer = vec![0; READ_LENGTH];
        loop {
            match receiving.read(&mut buffer).await.map_err(failure)? {
                Some(length) => load.borrow_mut().receive(&buffer[..length]),
                None => return Err(failure("the server has ended the stream")),
            }
        }
    };
    tokio::select! {
        outcome = send => outcome,
        outcome = receive => outcome,
    }
}

async fn close(connection: &Connection, endpoint: &Endpoint) {
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
}

fn runtime() -> Result<Runtime, RunError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failure)
}
