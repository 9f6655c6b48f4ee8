//! The end that publishes.

use std::time::Duration;

use taran::ExclusivePublication;
use taran_core::clock::{Clock, SystemClock, saturating_nanos};

use super::{StreamConfig, StreamReport};
use crate::payload;
use crate::side::{RunError, Side};

/// Messages between two looks at the clock.
const BURST: u32 = 100;

/// Publishes for the warm-up, the measured time and a little longer, so that the other end measures a full stream.
///
/// # Errors
/// [`RunError`] where a driver, a connection or an option is at fault.
pub fn publish(config: &StreamConfig, side: &mut Side) -> Result<StreamReport, RunError> {
    let publication = side.add_exclusive_publication(&config.channel, config.stream_id)?;
    side.wait(config.patience, "a subscriber to connect", || {
        publication.is_connected()
    })?;
    let max = publication.max_payload_length();
    if config.length > max {
        return Err(RunError::Config(format!(
            "length is {} bytes, but a frame on {} carries at most {max}; raise its mtu",
            config.length, config.channel
        )));
    }
    let mut publisher = Publisher {
        publication,
        clock: SystemClock::new(),
        length: config.length,
        sequence: 0,
        retries: 0,
    };
    let begin_ns = publisher.clock.now().nanos;
    let start_ns = begin_ns.saturating_add(saturating_nanos(config.warmup));
    let start_ns = publisher.publish_until(start_ns, side)?;
    let before = publisher.sequence;
    let end_ns = start_ns.saturating_add(saturating_nanos(config.duration));
    let end_ns = publisher.publish_until(end_ns, side)?;
    let report = StreamReport {
        messages: publisher.sequence - before,
        length: config.length,
        elapsed: Duration::from_nanos(u64::try_from(end_ns - start_ns).unwrap_or(0)),
        troubles: publisher.retries,
    };
    // The subscriber began its warm-up a little later than this end.
    let margin = saturating_nanos(config.duration / 10 + Duration::from_millis(500));
    publisher.publish_until(end_ns.saturating_add(margin), side)?;
    Ok(report)
}

struct Publisher {
    publication: ExclusivePublication,
    clock: SystemClock,
    length: usize,
    sequence: u64,
    retries: u64,
}

impl Publisher {
    /// Gives the time at which it ended, at or after `end_ns`.
    fn publish_until(&mut self, end_ns: i64, side: &mut Side) -> Result<i64, RunError> {
        loop {
            let now_ns = self.clock.now().nanos;
            if now_ns >= end_ns {
                return Ok(now_ns);
            }
            self.burst(now_ns)?;
            side.turn()?;
        }
    }

    fn burst(&mut self, now_ns: i64) -> Result<(), RunError> {
        for _ in 0..BURST {
            match self.publication.try_claim(self.length) {
                Ok(mut claim) => {
                    payload::write(&mut claim, now_ns, self.sequence);
                    claim.commit();
                    self.sequence += 1;
                }
                Err(error) if error.is_retryable() => {
                    self.retries += 1;
                    // Where the subscriber or the driver has to share this core, spinning would hold up just them.
                    std::thread::yield_now();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
