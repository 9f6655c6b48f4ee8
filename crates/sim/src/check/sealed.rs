// SPDX-License-Identifier: Apache-2.0
//! A driver that secures all channels sends no plain frame.

use super::{Violation, violation};
use crate::network::{FrameKind, HostTraffic};

/// Checks what the sockets of a host have sent.
///
/// # Errors
/// A datagram begins with a frame of Aeron.
pub fn check(traffic: &HostTraffic) -> Result<(), Violation> {
    let counts = traffic.counts();
    for kind in FrameKind::ALL {
        let datagrams = counts.sent.of(kind).datagrams + counts.rejected.of(kind).datagrams;
        if kind != FrameKind::Other && datagrams > 0 {
            violation!("{datagrams} plain datagrams sent: {kind:?}");
        }
    }
    Ok(())
}
