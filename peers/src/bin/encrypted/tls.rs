// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 over TCP, by `rustls` on sockets that never block.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection};
use taran_bench::side::RunError;

use super::load::Load;
use super::{SERVER_NAME, failure};

/// Bytes of replies that one read takes.
const READ_LENGTH: usize = 65_536;

pub(crate) struct Server {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Server {
    pub(crate) fn bind(config: ServerConfig) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
            config: Arc::new(config),
        })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Sends the bytes of one connection back until the flag is set.
    pub(crate) fn echo(self, ended: &AtomicBool) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let socket = loop {
            match self.listener.accept() {
                Ok((socket, _)) => break socket,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) if ended.load(Ordering::Relaxed) => return Ok(()),
                Err(_) => {}
            }
        };
        let connection = ServerConnection::new(self.config).map_err(io::Error::other)?;
        let mut end = End::new(connection, socket)?;
        let mut buffer = vec![0; READ_LENGTH];
        while !ended.load(Ordering::Relaxed) {
            match end.turn(&mut buffer) {
                // The client has closed the connection after its last phase.
                Err(error) if is_closed(&error) => return Ok(()),
                length => {
                    let length = length?;
                    end.connection.writer().write_all(&buffer[..length])?;
                }
            }
        }
        Ok(())
    }
}

/// Runs the phases of the load over a connection.
pub(crate) fn run(
    address: SocketAddr,
    config: ClientConfig,
    load: &mut Load,
    phases: [Duration; 2],
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let name = ServerName::try_from(SERVER_NAME).map_err(failure)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(failure)?;
    let socket = TcpStream::connect(address).map_err(failure)?;
    let mut end = End::new(connection, socket).map_err(failure)?;
    let mut buffer = vec![0; READ_LENGTH];
    while end.connection.is_handshaking() {
        end.turn(&mut buffer).map_err(failure)?;
    }
    for phase in phases {
        load.begin(phase);
        while !load.is_done() {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let due = load.due();
            if !due.is_empty() {
                end.connection.writer().write_all(due).map_err(failure)?;
            }
            let length = end.turn(&mut buffer).map_err(failure)?;
            load.receive(&buffer[..length]);
        }
        load.end()?;
    }
    Ok(())
}

/// One end of a connection.
struct End<C> {
    connection: C,
    socket: TcpStream,
}

impl<C, D> End<C>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: rustls::SideData,
{
    fn new(mut connection: C, socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        // What the socket does not take at once has to wait, whatever its length.
        connection.set_buffer_limit(None);
        Ok(Self { connection, socket })
    }

    /// Sends and receives what the socket takes and has. Returns the number of plain bytes in the buffer.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match self.connection.read_tls(&mut self.socket) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.connection
                    .process_new_packets()
                    .map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        match self.connection.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            outcome => outcome,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}
