//! What ends the driver's process: signals, a client's request, a failed agent.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// Why a driver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// By this signal.
    Signal(u8),
    /// A client asked for it.
    Requested,
}

impl Stop {
    /// As `aeronmd`: the number of the signal, or 0.
    pub(super) fn exit_code(self) -> ExitCode {
        match self {
            Stop::Signal(number) => ExitCode::from(number),
            Stop::Requested => ExitCode::SUCCESS,
        }
    }
}

/// Signals of this process, from the moment at which it is made.
#[derive(Debug)]
pub(super) struct Signals {
    /// Number of the signal that came last; 0 while there is none.
    last: Arc<AtomicUsize>,
    /// A byte arrives for each signal and each [`Bell::ring`].
    wake_up: UnixStream,
    bell: UnixStream,
}

/// Ends a wait of [`Signals`] from another thread.
#[derive(Debug)]
pub(super) struct Bell(UnixStream);

impl Bell {
    /// Never blocks.
    pub(super) fn ring(&mut self) {
        // A full socket wakes up as well as one byte more would.
        let _ = self.0.write(&[0]);
    }
}

impl Signals {
    /// Takes over SIGINT and SIGTERM.
    pub(super) fn register() -> io::Result<Signals> {
        let (wake_up, bell) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            // First the number, then the byte: who is woken up finds the number. Hooks run in order of registration.
            flag::register_usize(signal, Arc::clone(&last), number(signal).into())?;
            pipe::register(signal, bell.try_clone()?)?;
        }
        Ok(Signals {
            last,
            wake_up,
            bell,
        })
    }

    /// Something for other threads to end a wait with.
    pub(super) fn bell(&self) -> io::Result<Bell> {
        self.bell.try_clone().map(Bell)
    }

    /// The signal that has come, if any.
    pub(super) fn received(&self) -> Option<Stop> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Stop::Signal(u8::try_from(number).unwrap_or(1))),
        }
    }

    /// Sleeps until a signal comes or the bell rings, for `longest` at most.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<()> {
        self.wake_up.set_read_timeout(Some(longest))?;
        // How many bytes there were does not matter, one of them would do.
        let read = self.wake_up.read(&mut [0; 64]);
        match read.map(|_| ()) {
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// Numbers of signals are small and positive.
fn number(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or(1)
}
