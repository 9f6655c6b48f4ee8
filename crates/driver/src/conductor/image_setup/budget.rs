// SPDX-License-Identifier: Apache-2.0
//! Budget of images that have received nothing yet.
//!
//! A SETUP frame of 40 bytes causes the reservation of a megabyte or more, and its source address may be forged. Until
//! an image has accepted a frame or a heartbeat, it takes no more pages than at its creation, and these count against two
//! limits: that of its source address, so that one host cannot take the space of others, and that of its stream, where
//! addresses are forged. One heartbeat ends that, because an open publication without data sends nothing else; an image
//! that it keeps takes no more pages until data arrives.
//!
//! Contract: `check` before the file of an image is requested, `add` when it was; `watch` when the image was created,
//! `remove` when it was not, or is freed. A limit that is less than a single image does not exclude a source or a stream:
//! the only image that counts for it is always admitted.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::boundary::{CreateImage, EndpointId, ImageId, ImageShared};

/// Interval at which images that have received something are looked for while a limit is reached.
const PURGE_INTERVAL_NS: i64 = 1_000_000;

/// Maximum bytes of images that have received nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetLimits {
    pub(crate) per_source: u64,
    pub(crate) per_stream: u64,
}

impl BudgetLimits {
    /// Limits each share by the capacity of the file system: an eighth and a quarter of it.
    pub(crate) fn within(self, capacity: Option<u64>) -> Self {
        let capacity = capacity.unwrap_or(u64::MAX);
        Self {
            per_source: self.per_source.min(capacity / 8),
            per_stream: self.per_stream.min(capacity / 4),
        }
    }
}

/// Reason why a SETUP is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverBudget {
    /// True for the limit of the source, false for that of the stream.
    pub(crate) is_source: bool,
    /// Bytes that count already.
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

/// Images that have received nothing, as far as known.
#[derive(Debug, Default)]
pub(crate) struct ImageBudget {
    images: Vec<SilentImage>,
    purged_ns: Option<i64>,
}

#[derive(Debug)]
struct SilentImage {
    id: ImageId,
    source: IpAddr,
    stream: (EndpointId, i32),
    bytes: u64,
    /// Set once the image was created.
    shared: Option<Arc<ImageShared>>,
}

impl ImageBudget {
    /// Checks that an image with `bytes` reserved bytes is within the limits.
    pub(crate) fn check(
        &mut self,
        request: &CreateImage,
        bytes: u64,
        limits: BudgetLimits,
        now_ns: i64,
    ) -> Result<(), OverBudget> {
        let first = self.check_known(request, bytes, limits);
        let is_purged = self
            .purged_ns
            .is_some_and(|purged| now_ns - purged < PURGE_INTERVAL_NS);
        if first.is_ok() || is_purged {
            return first;
        }
        self.purged_ns = Some(now_ns);
        self.images
            .retain(|image| !image.shared.as_ref().is_some_and(|of| of.has_received()));
        self.check_known(request, bytes, limits)
    }

    fn check_known(
        &self,
        request: &CreateImage,
        bytes: u64,
        limits: BudgetLimits,
    ) -> Result<(), OverBudget> {
        let (source, stream) = (source_of(request.source), stream_of(request));
        let sum = |counts: &dyn Fn(&SilentImage) -> bool| -> u64 {
            let counted = self.images.iter().filter(|image| counts(image));
            counted.map(|image| image.bytes).sum()
        };
        let of_source = sum(&|image| image.source == source);
        let of_stream = sum(&|image| image.stream == stream);
        for (is_source, used, limit) in [
            (true, of_source, limits.per_source),
            (false, of_stream, limits.per_stream),
        ] {
            if used > 0 && used.saturating_add(bytes) > limit {
                return Err(OverBudget {
                    is_source,
                    used,
                    limit,
                });
            }
        }
        Ok(())
    }

    /// Adds an image whose file was requested.
    pub(crate) fn add(&mut self, id: ImageId, request: &CreateImage, bytes: u64) {
        self.images.push(SilentImage {
            id,
            source: source_of(request.source),
            stream: stream_of(request),
            bytes,
            shared: None,
        });
    }

    /// Watches a created image for its first frame.
    pub(crate) fn watch(&mut self, id: ImageId, shared: &Arc<ImageShared>) {
        if let Some(image) = self.images.iter_mut().find(|image| image.id == id) {
            image.shared = Some(Arc::clone(shared));
        }
    }

    /// Removes an image that could not be created or is freed.
    pub(crate) fn remove(&mut self, id: ImageId) {
        self.images.retain(|image| image.id != id);
    }
}

fn stream_of(request: &CreateImage) -> (EndpointId, i32) {
    (request.endpoint, request.stream_id)
}

/// Returns the address that a source is counted by: for IPv6 the first 64 bits, since a host has all of the others.
fn source_of(source: SocketAddr) -> IpAddr {
    match source.ip() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() >> 64 << 64;
            address
                .to_ipv4_mapped()
                .map_or(IpAddr::V6(Ipv6Addr::from_bits(prefix)), IpAddr::V4)
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::TransportId;

    const LIMITS: BudgetLimits = BudgetLimits {
        per_source: 30,
        per_stream: 50,
    };

    fn request(source: &str, stream_id: i32) -> CreateImage {
        let source = SocketAddr::new(source.parse().unwrap(), 9);
        CreateImage {
            endpoint: EndpointId(1),
            transport: TransportId(1),
            session_id: 7,
            stream_id,
            initial_term_id: 0,
            active_term_id: 0,
            term_offset: 0,
            term_length: 65_536,
            mtu: 1_408,
            ttl: 0,
            own_ttl: 0,
            is_group: false,
            wants_response: false,
            source,
            control: source,
        }
    }

    /// Adds images of 10 bytes until one is refused; returns their number and the refusal.
    fn fill(budget: &mut ImageBudget, from: &CreateImage, first_id: i64) -> (i64, OverBudget) {
        for count in 0..100 {
            if let Err(refused) = budget.check(from, 10, LIMITS, 0) {
                return (count, refused);
            }
            budget.add(ImageId(first_id + count), from, 10);
        }
        panic!("no limit");
    }

    #[test]
    fn check_limits_the_bytes_of_a_source_over_all_streams() {
        let mut budget = ImageBudget::default();
        budget.add(ImageId(1), &request("10.0.0.1", 5), 10);
        let (count, refused) = fill(&mut budget, &request("10.0.0.1", 6), 2);
        assert_eq!(count, 2);
        assert_eq!(
            (refused.is_source, refused.used, refused.limit),
            (true, 30, 30)
        );
        budget.remove(ImageId(1));
        assert_eq!(budget.check(&request("10.0.0.1", 6), 10, LIMITS, 0), Ok(()));
    }

    #[test]
    fn check_limits_the_bytes_of_a_stream_over_all_sources() {
        let mut budget = ImageBudget::default();
        for host in 0..5 {
            let from = request(&format!("10.0.0.{host}"), 5);
            assert_eq!(budget.check(&from, 10, LIMITS, 0), Ok(()));
            budget.add(ImageId(host), &from, 10);
        }
        let refused = budget.check(&request("10.0.1.1", 5), 10, LIMITS, 0);
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.is_source, refused.used, refused.limit),
            (false, 50, 50)
        );
        assert_eq!(budget.check(&request("10.0.1.1", 6), 10, LIMITS, 0), Ok(()));
    }

    #[test]
    fn check_does_not_count_images_that_have_received_something() {
        let mut budget = ImageBudget::default();
        let from = request("10.0.0.1", 5);
        fill(&mut budget, &from, 0);
        let shared = Arc::new(ImageShared::new(0, 1_000));
        budget.watch(ImageId(1), &shared);
        assert!(budget.check(&from, 10, LIMITS, PURGE_INTERVAL_NS).is_err());
        shared.receiver_received();
        assert!(
            budget
                .check(&from, 10, LIMITS, 2 * PURGE_INTERVAL_NS - 1)
                .is_err(),
            "looked for once per interval"
        );
        assert_eq!(
            budget.check(&from, 10, LIMITS, 2 * PURGE_INTERVAL_NS),
            Ok(())
        );
    }

    #[test]
    fn check_admits_one_image_of_any_length() {
        let mut budget = ImageBudget::default();
        let from = request("10.0.0.1", 5);
        assert_eq!(budget.check(&from, 1_000, LIMITS, 0), Ok(()));
    }

    #[test]
    fn sources_are_counted_by_host() {
        let counted = |text: &str| source_of(SocketAddr::new(text.parse().unwrap(), 1));
        assert_eq!(
            counted("2001:db8:1:2:3::4"),
            counted("2001:db8:1:2:ffff::1")
        );
        assert_ne!(counted("2001:db8:1:2::1"), counted("2001:db8:1:3::1"));
        assert_eq!(counted("::ffff:10.0.0.1"), counted("10.0.0.1"));
        assert_ne!(counted("10.0.0.1"), counted("10.0.0.2"));
    }

    #[test]
    fn within_takes_shares_of_the_file_system() {
        let whole = BudgetLimits {
            per_source: 1 << 30,
            per_stream: 2 << 30,
        };
        let small = whole.within(Some(64 << 20));
        assert_eq!((small.per_source, small.per_stream), (8 << 20, 16 << 20));
        assert_eq!(whole.within(None), whole);
        assert_eq!(whole.within(Some(1 << 40)), whole);
    }
}
