// SPDX-License-Identifier: Apache-2.0
//! Conflicts among options (docs/spec/uri-and-configuration.md §2.13). The range of each option was checked when it was
//! set.

use taran_net::BufferLimits;
use taran_protocol::option::{OptionId, OptionSet};

use crate::diagnostics::DriverWarning;

/// Conflict between two options, or between an option and the system.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}={value} {needed}", option.spec().property)]
#[non_exhaustive]
pub struct Conflict {
    /// The option to change.
    pub option: OptionId,
    /// Its value as text.
    pub value: String,
    /// The requirement, as text that follows the value.
    pub needed: String,
}

taran_core::debug_is_display!(Conflict);

/// Maximum length of `cnc.dat`: its lengths are 32-bit.
const CNC_LENGTH_MAX: usize = i32::MAX as usize;

/// Checks options against each other. Returns all conflicts.
pub fn validate(options: &OptionSet) -> Vec<Conflict> {
    let mut conflicts = Conflicts {
        options,
        found: Vec::new(),
    };
    conflicts.buffers();
    conflicts.timeouts();
    conflicts.network();
    conflicts.found.extend(super::names::conflicts(options));
    conflicts.found
}

/// Checks options against the limits of the system.
pub(crate) fn validate_limits(options: &OptionSet, limits: &BufferLimits) -> Vec<Conflict> {
    let mut conflicts = Conflicts {
        options,
        found: Vec::new(),
    };
    conflicts.socket_buffers(limits);
    conflicts.found
}

/// Returns warnings for buffers for which the system grants less than configured. The driver works nevertheless, with
/// more loss or less throughput.
pub(crate) fn shortfalls(options: &OptionSet, limits: &BufferLimits) -> Vec<DriverWarning> {
    // Linux doubles the requested length and reports the double.
    let factor = 2;
    let buffers = [
        (
            OptionId::SocketReceiveBuffer,
            options.socket_so_rcvbuf(),
            limits.max.receive,
            "rmem_max",
        ),
        (
            OptionId::SocketSendBuffer,
            options.socket_so_sndbuf(),
            limits.max.send,
            "wmem_max",
        ),
    ];
    let short = buffers
        .into_iter()
        .filter_map(|(option, asked, max, sysctl)| {
            let granted = max / factor;
            (asked > granted).then(|| DriverWarning::SocketBuffer {
                option: option.spec().property,
                value: options.text(option),
                limit: granted,
                sysctl,
            })
        });
    short.collect()
}

struct Conflicts<'a> {
    options: &'a OptionSet,
    found: Vec<Conflict>,
}

impl Conflicts<'_> {
    fn require(
        &mut self,
        holds: bool,
        option: OptionId,
        needed: impl FnOnce(&OptionSet) -> String,
    ) {
        if !holds {
            let value = self.options.text(option);
            self.found.push(Conflict {
                option,
                value,
                needed: needed(self.options),
            });
        }
    }

    fn buffers(&mut self) {
        let options = self.options;
        let sections = options.conductor_buffer_length()
            + options.clients_buffer_length()
            + options.counters_buffer_length() * 5
            + options.error_buffer_length();
        let length = (128 + sections).next_multiple_of(options.file_page_size());
        self.require(length <= CNC_LENGTH_MAX, OptionId::CountersBufferLength, |_| {
            format!(
                "makes cnc.dat {length} bytes long, at most {CNC_LENGTH_MAX} are possible: lower it (counters take five \
                 times their length), aeron.conductor.buffer.length, aeron.clients.buffer.length or \
                 aeron.error.buffer.length"
            )
        });
    }

    /// Requires unblock > client liveness > timer interval, and every untethered timeout > timer interval.
    fn timeouts(&mut self) {
        let options = self.options;
        let interval = options.timer_interval_ns();
        let liveness = options.client_liveness_timeout_ns();
        self.exceeds(
            OptionId::ClientLivenessTimeout,
            liveness,
            OptionId::TimerInterval,
            interval,
        );
        self.exceeds(
            OptionId::PublicationUnblockTimeout,
            options.publication_unblock_timeout_ns(),
            OptionId::ClientLivenessTimeout,
            liveness,
        );
        self.exceeds(
            OptionId::UntetheredWindowLimitTimeout,
            options.untethered_window_limit_timeout_ns(),
            OptionId::TimerInterval,
            interval,
        );
        if let Some(linger) = options.untethered_linger_timeout_ns() {
            self.exceeds(
                OptionId::UntetheredLingerTimeout,
                linger,
                OptionId::TimerInterval,
                interval,
            );
        }
        self.exceeds(
            OptionId::UntetheredRestingTimeout,
            options.untethered_resting_timeout_ns(),
            OptionId::TimerInterval,
            interval,
        );
    }

    fn exceeds(&mut self, option: OptionId, value: i64, other: OptionId, other_value: i64) {
        self.require(value > other_value, option, |options| {
            format!(
                "must be greater than {}={}",
                other.spec().property,
                options.text(other)
            )
        });
    }

    fn network(&mut self) {
        let options = self.options;
        let window = options.rcv_initial_window_length();
        self.require(
            options.mtu_length() <= window,
            OptionId::MtuLength,
            |options| {
                format!(
                    "must not be greater than aeron.rcv.initial.window.length={}",
                    options.text(OptionId::InitialWindowLength)
                )
            },
        );
        let retry = options
            .nak_unicast_delay_ns()
            .checked_mul(options.nak_unicast_retry_delay_ratio());
        self.require(
            retry.is_some(),
            OptionId::NakUnicastRetryDelayRatio,
            |options| {
                format!(
                    "times aeron.nak.unicast.delay={} is too long",
                    options.text(OptionId::NakUnicastDelay)
                )
            },
        );
        let low = options.publication_reserved_session_id_low();
        let high = options.publication_reserved_session_id_high();
        self.require(low <= high, OptionId::ReservedSessionIdLow, |_| {
            format!("must not be greater than aeron.publication.reserved.session.id.high={high}")
        });
        self.require(high - low <= i64::from(i32::MAX), OptionId::ReservedSessionIdHigh, |_| {
            format!("reserves more than 2147483647 session ids, with aeron.publication.reserved.session.id.low={low}")
        });
    }

    /// Checks against the configured buffer length or the system default.
    fn socket_buffers(&mut self, limits: &BufferLimits) {
        let options = self.options;
        let or_default = |asked: usize, default: usize| if asked > 0 { asked } else { default };
        let send = or_default(options.socket_so_sndbuf(), limits.default.send);
        self.require(options.mtu_length() <= send, OptionId::MtuLength, |_| {
            format!("must not be greater than SO_SNDBUF={send}, raise aeron.socket.so_sndbuf")
        });
        let receive = or_default(options.socket_so_rcvbuf(), limits.default.receive);
        self.require(
            options.rcv_initial_window_length() <= receive,
            OptionId::InitialWindowLength,
            |_| {
                format!(
                    "must not be greater than SO_RCVBUF={receive}, raise aeron.socket.so_rcvbuf"
                )
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use taran_net::BufferLengths;
    use taran_protocol::option::Source;

    use super::*;

    #[test]
    fn debug_of_conflicts_and_warnings_is_their_text() {
        let conflict = Conflict {
            option: OptionId::MtuLength,
            value: "1m".to_owned(),
            needed: "is too much".to_owned(),
        };
        assert_eq!(conflict.to_string(), format!("{conflict:?}"));
        let warning = DriverWarning::OpenDirectory {
            directory: "/dev/shm/one".into(),
            mode: 0o755,
        };
        assert_eq!(warning.to_string(), format!("{warning:?}"));
    }

    fn limits(max: usize) -> BufferLimits {
        let lengths = |length| BufferLengths {
            send: length,
            receive: length,
        };
        BufferLimits {
            default: lengths(212_992),
            max: lengths(max),
        }
    }

    #[test]
    fn defaults_have_no_conflicts() {
        let options = OptionSet::driver();
        assert_eq!(validate(&options), []);
        assert_eq!(validate_limits(&options, &limits(425_984)), []);
        assert!(shortfalls(&options, &limits(425_984)).is_empty());
    }

    #[test]
    fn shortfall_names_option_and_sysctl() {
        let mut options = OptionSet::driver();
        options
            .set(OptionId::SocketReceiveBuffer, "2m", &Source::Code)
            .unwrap();
        let short = shortfalls(&options, &limits(425_984));
        assert_eq!(short.len(), 1);
        let text = short[0].to_string();
        assert!(
            text.contains("aeron.socket.so_rcvbuf=2m") && text.contains("net.core.rmem_max"),
            "{text}"
        );
    }
}
