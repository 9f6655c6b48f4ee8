//! Waiting for datagrams.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Number of descriptors that are polled without allocation.
const INLINE: usize = 64;

/// Waits until one of the descriptors is readable, for at most `timeout`. Returns true if one is readable.
///
/// Consumes no data. A signal ends the wait early. A closed descriptor ends it immediately. With a `timeout` of zero it
/// polls without waiting, and never allocates.
pub fn wait(fds: &[RawFd], timeout: Duration) -> io::Result<bool> {
    let entry = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    if fds.len() <= INLINE {
        let mut entries = [entry(-1); INLINE];
        for (slot, fd) in entries.iter_mut().zip(fds) {
            slot.fd = *fd;
        }
        poll(&mut entries[..fds.len()], timeout)
    } else if timeout.is_zero() {
        // Agents may poll in every duty cycle: in portions, to avoid an allocation.
        for fds in fds.chunks(INLINE) {
            if wait(fds, timeout)? {
                return Ok(true);
            }
        }
        Ok(false)
    } else {
        let mut entries: Vec<_> = fds.iter().copied().map(entry).collect();
        poll(&mut entries, timeout)
    }
}

fn poll(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<bool> {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
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
    match ready {
        0 => Ok(false),
        1.. => Ok(true),
        _ => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                Ok(false)
            } else {
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    use super::*;

    #[test]
    fn wait_ends_when_a_datagram_arrives() {
        let sockets: Vec<_> = (0..70)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let fds: Vec<_> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        for count in [70, 64, 1] {
            let target = &sockets[count - 1];
            assert!(!wait(&fds[..count], Duration::ZERO).unwrap());
            sockets[0]
                .send_to(b"x", target.local_addr().unwrap())
                .unwrap();
            assert!(wait(&fds[..count], Duration::from_secs(10)).unwrap());
            target.recv(&mut [0; 8]).unwrap();
        }
    }

    #[test]
    fn wait_ends_after_the_timeout() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let timeout = Duration::from_micros(1_500);
        for fds in [&[][..], &[silent.as_raw_fd()]] {
            let start = Instant::now();
            assert!(!wait(fds, timeout).unwrap());
            // The wait may be longer on a loaded machine, but not shorter.
            assert!(start.elapsed() >= timeout);
        }
    }
}
