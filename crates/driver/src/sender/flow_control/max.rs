// SPDX-License-Identifier: Apache-2.0
//! Max flow control: the limit of the only receiver, or of the fastest of several (docs/spec/wire.md §4.3).

use super::{FlowControl, StatusReport};

/// Unicast or max multicast flow control.
#[derive(Debug)]
#[doc(alias = "UnicastFlowControl")]
#[doc(alias = "MaxMulticastFlowControl")]
pub(super) struct MaxFlowControl {
    retransmit_window_multiple: i32,
}

impl MaxFlowControl {
    pub(super) fn new(retransmit_window_multiple: i32) -> Self {
        Self {
            retransmit_window_multiple,
        }
    }
}

impl FlowControl for MaxFlowControl {
    fn on_status(&mut self, report: &StatusReport, limit: i64, _now_ns: i64) -> i64 {
        limit.max(report.position + i64::from(report.window))
    }

    fn on_idle(&mut self, limit: i64, _now_ns: i64) -> i64 {
        limit
    }

    fn next_deadline_ns(&self) -> i64 {
        i64::MAX
    }

    fn on_setup_requested(&mut self, _group_tag: Option<i64>) {}

    fn on_requested_setup(&mut self, _limit: i64, _now_ns: i64) {}

    fn on_error(&mut self, _receiver_id: i64, _group_tag: Option<i64>, _now_ns: i64) {}

    fn has_required_receivers(&self) -> bool {
        true
    }

    fn retransmit_window_multiple(&self) -> i32 {
        self.retransmit_window_multiple
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_after_lower_status_is_unchanged() {
        let mut max = MaxFlowControl::new(16);
        let report = |position, window| StatusReport {
            receiver_id: 1,
            group_tag: None,
            position,
            window,
            is_end_of_stream: false,
        };
        assert_eq!(max.on_status(&report(1000, 500), 0, 0), 1500);
        assert_eq!(max.on_status(&report(900, 500), 1500, 0), 1500);
        assert_eq!(max.on_idle(1500, 0), 1500);
        assert!(max.has_required_receivers());
    }
}
