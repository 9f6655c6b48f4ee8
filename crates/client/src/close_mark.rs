// SPDX-License-Identifier: Apache-2.0
//! Mark of a closed resource.

use std::sync::OnceLock;

use crate::client_state::CloseReason;

/// Mark of a publication, subscription or counter: open, then closed for good. The first reason is kept, so that a
/// resource that the application has closed does not seem lost when the driver is lost later.
#[derive(Debug, Default)]
pub(crate) struct CloseMark(OnceLock<CloseReason>);

impl CloseMark {
    /// Marks the resource as closed. Returns true on the first call.
    pub(crate) fn close(&self, reason: CloseReason) -> bool {
        self.0.set(reason).is_ok()
    }

    /// Returns true if the resource is closed. A thread that reads true sees what was written before the close.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns why the resource is closed; `None` while it is open.
    pub(crate) fn reason(&self) -> Option<CloseReason> {
        self.0.get().copied()
    }
}
