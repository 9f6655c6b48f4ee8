// SPDX-License-Identifier: Apache-2.0
//! Causes that stop the driver process: signals and a client's request.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
#[cfg(feature = "secure")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(feature = "secure")]
use signal_hook::consts::signal::SIGHUP;
use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// Reason why a driver or an archive stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The signal with this number.
    Signal(u8),
    /// A client's termination request.
    Requested,
}

impl Stop {
    /// Returns the exit code of `aeronmd`: the number of the signal, or 0.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Stop::Signal(number) => ExitCode::from(number),
            Stop::Requested => ExitCode::SUCCESS,
        }
    }
}

/// Signals received by this process since registration.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Number of the most recent signal; 0 if none.
    last: Arc<AtomicUsize>,
    /// SIGHUP was received and not yet taken.
    #[cfg(feature = "secure")]
    hangup: Arc<AtomicBool>,
    /// Receives a byte for each signal and each [`SignalWaker::wake`].
    wake_receiver: UnixStream,
    wake_sender: UnixStream,
}

/// Ends a wait of [`Signals`] from another thread.
#[derive(Debug)]
pub(crate) struct SignalWaker(UnixStream);

impl SignalWaker {
    /// Ends the current or the next wait. Never blocks.
    pub(crate) fn wake(&mut self) {
        // If the socket buffer is full, the reader wakes up anyway.
        let _ = self.0.write(&[0]);
    }
}

impl Signals {
    /// Installs handlers for SIGINT and SIGTERM.
    pub(crate) fn register() -> io::Result<Signals> {
        let (wake_receiver, wake_sender) = UnixStream::pair()?;
        wake_sender.set_nonblocking(true)?;
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            // The number is stored before the byte is written, so that a woken reader finds it. Hooks run in order of
            // registration.
            flag::register_usize(signal, Arc::clone(&last), number(signal).into())?;
            pipe::register(signal, wake_sender.try_clone()?)?;
        }
        Ok(Signals {
            last,
            #[cfg(feature = "secure")]
            hangup: Arc::default(),
            wake_receiver,
            wake_sender,
        })
    }

    /// Installs a handler for SIGHUP, which ends the process otherwise.
    #[cfg(feature = "secure")]
    pub(crate) fn register_hangup(&self) -> io::Result<()> {
        flag::register(SIGHUP, Arc::clone(&self.hangup))?;
        pipe::register(SIGHUP, self.wake_sender.try_clone()?)?;
        Ok(())
    }

    /// Returns true if SIGHUP was received since the last call.
    #[cfg(feature = "secure")]
    pub(crate) fn take_hangup(&self) -> bool {
        self.hangup.swap(false, Ordering::Relaxed)
    }

    /// Returns a handle with which other threads end a wait.
    pub(crate) fn waker(&self) -> io::Result<SignalWaker> {
        self.wake_sender.try_clone().map(SignalWaker)
    }

    /// Returns the most recent signal, if any.
    pub(crate) fn received(&self) -> Option<Stop> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Stop::Signal(u8::try_from(number).unwrap_or(1))),
        }
    }

    /// Sleeps until a signal arrives or [`SignalWaker::wake`] is called, at most for `longest`.
    pub(crate) fn wait(&mut self, longest: Duration) -> io::Result<()> {
        self.wake_receiver.set_read_timeout(Some(longest))?;
        // The number of bytes does not matter.
        let read = self.wake_receiver.read(&mut [0; 64]);
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

/// Converts a signal number; they are small and positive.
fn number(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or(1)
}
