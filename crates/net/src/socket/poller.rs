// SPDX-License-Identifier: Apache-2.0
//! Polling and waiting for sockets, by their descriptors.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use rustix::event::EventfdFlags;
use taran_core::agent::{AgentWaker, WaitRegistration, register_wait};

use crate::{Arrivals, NetError, PollSource, Poller};

/// Up to this number of sockets, all are reported without a system call. Of more, the kernel is asked which are
/// readable: that call costs about as much as five empty receive calls.
const SMALL_SET: usize = 5;

/// Poller of sockets.
#[derive(Debug)]
pub(crate) struct SocketPoller {
    sources: Vec<PollSource>,
    /// The event descriptor of `signal`, and those of all sources that have one, in order.
    entries: Vec<libc::pollfd>,
    signal: Arc<WakeSignal>,
    /// The wait, while it is known to the wakers of the thread.
    wait: Option<WaitRegistration>,
    waker: AgentWaker,
}

impl SocketPoller {
    pub(crate) fn new() -> Result<Self, NetError> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let event = rustix::event::eventfd(0, flags).map_err(|error| NetError::Query {
            what: "an event descriptor",
            source: error.into(),
        })?;
        let signal = Arc::new(WakeSignal {
            event,
            is_pending: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
        });
        Ok(Self {
            sources: Vec::new(),
            entries: vec![entry(signal.event.as_raw_fd())],
            signal,
            wait: None,
            waker: AgentWaker::default(),
        })
    }

    /// Returns true if each source has a descriptor.
    fn knows_all(&self) -> bool {
        self.entries.len() == self.sources.len() + 1
    }
}

impl Poller for SocketPoller {
    fn start(&mut self) {
        self.wait = Some(register_wait(Arc::clone(&self.signal).into()));
        self.waker.register();
    }

    fn set_sources(&mut self, sources: &[PollSource]) {
        self.sources.clear();
        self.sources.extend_from_slice(sources);
        self.entries.truncate(1);
        let descriptors = sources.iter().filter_map(|source| match source.arrivals {
            Arrivals::Descriptor(fd) => Some(entry(fd)),
            Arrivals::Unknown | Arrivals::Queue(_) => None,
        });
        self.entries.extend(descriptors);
    }

    fn poll(&mut self, receive: &mut dyn FnMut(usize) -> usize) -> usize {
        if self.sources.len() <= SMALL_SET || !self.knows_all() {
            return (0..self.sources.len()).map(receive).sum();
        }
        let sockets = &mut self.entries[1..];
        if poll_descriptors(sockets, Duration::ZERO).is_err() {
            return (0..self.sources.len()).map(receive).sum();
        }
        let ready = self.sources.iter().zip(sockets).enumerate();
        ready
            .filter(|(_, (source, entry))| source.is_always_ready || entry.revents != 0)
            .map(|(index, _)| receive(index))
            .sum()
    }

    /// Parks the thread if no source has a descriptor, or if the system cannot wait for them.
    fn wait(&mut self, max: Duration) {
        if self.entries.len() == 1 {
            thread::park_timeout(max);
            return;
        }
        let signal = &self.signal;
        signal.is_waiting.store(true, Ordering::SeqCst);
        let waited = if signal.is_pending.swap(false, Ordering::SeqCst) {
            Ok(())
        } else {
            poll_descriptors(&mut self.entries, max)
        };
        signal.is_waiting.store(false, Ordering::SeqCst);
        // The duty cycle that follows sees the work of a wake so far.
        signal.is_pending.swap(false, Ordering::SeqCst);
        match waited {
            Ok(()) if self.entries[0].revents != 0 => {
                self.entries[0].revents = 0;
                signal.clear_event();
            }
            Ok(()) => {}
            Err(_) => thread::park_timeout(max),
        }
    }

    /// Returns the waker of the thread, which ends its parks and the wait for sockets.
    fn waker(&self) -> Waker {
        self.waker.task_waker()
    }
}

/// Ends a wait for sockets.
///
/// `wake` first sets `is_pending`, then reads `is_waiting`; the poller does it the other way round. All are sequentially
/// consistent, so that at least one sees the other: the poller does not wait, or the event descriptor is written.
#[derive(Debug)]
struct WakeSignal {
    event: OwnedFd,
    is_pending: AtomicBool,
    is_waiting: AtomicBool,
}

impl WakeSignal {
    fn clear_event(&self) {
        // The descriptor does not block, and its value does not matter.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }
}

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_pending.store(true, Ordering::SeqCst);
        if self.is_waiting.load(Ordering::SeqCst) {
            // Fails only if the descriptor is readable already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

fn entry(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Waits until one of the descriptors is readable, for at most `timeout`, and marks the readable ones. Consumes no
/// data. A signal ends the wait early; then none is marked. A closed descriptor ends it immediately.
fn poll_descriptors(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    let timeout = libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: `entries` and `timeout` are borrowed until after the call, and the count is that of `entries`.
    let ready = unsafe {
        libc::ppoll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    if ready >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() != io::ErrorKind::Interrupted {
        return Err(error);
    }
    for entry in entries {
        entry.revents = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn bound(count: usize) -> (Vec<UdpSocket>, Vec<PollSource>) {
        let sockets: Vec<_> = (0..count)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let sources = sockets
            .iter()
            .map(|socket| PollSource::new("sockets", Arrivals::Descriptor(socket.as_raw_fd())))
            .collect();
        (sockets, sources)
    }

    fn send_to(sockets: &[UdpSocket], index: usize) {
        let to = sockets[index].local_addr().unwrap();
        sockets[0].send_to(b"x", to).unwrap();
    }

    fn reported(poller: &mut SocketPoller) -> Vec<usize> {
        let mut reported = Vec::new();
        let sum = poller.poll(&mut |index| {
            reported.push(index);
            10 + index
        });
        assert_eq!(sum, reported.iter().map(|index| 10 + index).sum::<usize>());
        reported
    }

    #[test]
    fn poll_of_few_sockets_reports_all() {
        let (_sockets, sources) = bound(SMALL_SET);
        let mut poller = SocketPoller::new().unwrap();
        assert_eq!(reported(&mut poller), [0; 0]);
        poller.set_sources(&sources);
        assert_eq!(reported(&mut poller), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn poll_of_many_sockets_reports_readable_ones() {
        let (sockets, mut sources) = bound(100);
        let mut poller = SocketPoller::new().unwrap();
        poller.set_sources(&sources);
        assert_eq!(reported(&mut poller), [0; 0]);
        for index in [3, 99, 70] {
            send_to(&sockets, index);
        }
        assert_eq!(reported(&mut poller), [3, 70, 99]);
        sources[5].is_always_ready = true;
        poller.set_sources(&sources[..80]);
        assert_eq!(reported(&mut poller), [3, 5, 70]);
        sources[6].arrivals = Arrivals::Unknown;
        poller.set_sources(&sources);
        assert_eq!(reported(&mut poller).len(), 100, "one has no descriptor");
    }

    #[test]
    fn wait_ends_when_a_datagram_arrives() {
        for count in [70, 2, 1] {
            let (sockets, sources) = bound(count);
            let mut poller = SocketPoller::new().unwrap();
            poller.set_sources(&sources);
            send_to(&sockets, count - 1);
            let start = Instant::now();
            poller.wait(LONG);
            assert!(start.elapsed() < LONG);
        }
    }

    #[test]
    fn wait_ends_after_the_timeout() {
        let (_sockets, sources) = bound(1);
        let timeout = Duration::from_micros(1_500);
        let mut poller = SocketPoller::new().unwrap();
        poller.set_sources(&sources);
        let start = Instant::now();
        poller.wait(timeout);
        // The wait may be longer on a loaded machine, but not shorter.
        assert!(start.elapsed() >= timeout);
    }

    #[test]
    fn waker_ends_the_wait_on_sockets() {
        let (_sockets, sources) = bound(1);
        let mut poller = SocketPoller::new().unwrap();
        poller.start();
        poller.set_sources(&sources);
        let waker = poller.waker();
        let start = Instant::now();
        // Before the wait, and at any moment of it: each wake ends one wait.
        waker.wake_by_ref();
        poller.wait(LONG);
        thread::scope(|scope| {
            let (ended, next) = std::sync::mpsc::channel();
            scope.spawn(move || {
                for () in next {
                    waker.wake_by_ref();
                }
            });
            for _ in 0..2_000 {
                ended.send(()).unwrap();
                poller.wait(LONG);
            }
        });
        assert!(start.elapsed() < LONG);
        // Nothing is left over that would end later waits, but for one.
        let timeout = Duration::from_millis(1);
        poller.wait(timeout);
        poller.wait(timeout);
        let start = Instant::now();
        poller.wait(timeout);
        assert!(start.elapsed() >= timeout);
    }

    #[test]
    fn wakers_of_other_agents_of_the_thread_end_the_wait() {
        let (_sockets, sources) = bound(1);
        let earlier = AgentWaker::default();
        earlier.register();
        let mut pollers = [SocketPoller::new().unwrap(), SocketPoller::new().unwrap()];
        let later = AgentWaker::default();
        let start = Instant::now();
        for poller in &mut pollers {
            poller.start();
            poller.set_sources(&sources);
        }
        later.register();
        for waker in [earlier.task_waker(), later.task_waker(), pollers[0].waker()] {
            waker.wake();
            for poller in &mut pollers {
                poller.wait(LONG);
            }
        }
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn waker_ends_the_wait_without_sockets() {
        let mut poller = SocketPoller::new().unwrap();
        poller.start();
        poller.waker().wake();
        let start = Instant::now();
        poller.wait(LONG);
        assert!(start.elapsed() < LONG);
    }
}
