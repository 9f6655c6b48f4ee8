// SPDX-License-Identifier: Apache-2.0
//! A subscriber of a log: its position, and the state machine of an untethered one.

use taran_core::counters::Counter;
use taran_protocol::event::EventCode;
use taran_protocol::uri::Untethered;

use crate::event_log::{EventLog, FieldValue};

/// A subscription that reads a log.
#[doc(alias = "SubscriberPosition")]
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// Id of the entry in the subscriptions of the driver.
    pub(crate) subscription_id: i64,
    /// Its `sub-pos` counter.
    pub(crate) position: Counter,
    tether: TetherMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TetherMode {
    Tethered,
    Untethered {
        rejoin: bool,
        phase: UntetheredState,
        since_ns: i64,
    },
}

/// State of an untethered subscriber. One that falls behind the limit goes from `Active` through `Lingering` to `Resting`,
/// and back to `Active` if it rejoins.
#[doc(alias = "UntetheredSubscription")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UntetheredState {
    /// The image is available, and the position counts for the limit.
    Active,
    /// The image was reported as unavailable; the position still counts.
    Lingering,
    /// The position does not count.
    Resting,
}

/// Action that the owner of the log has to take for an untethered subscriber.
#[derive(Debug)]
pub(crate) enum UntetheredEvent {
    /// The image is to be reported as unavailable; the position is still tracked.
    Unavailable { subscription_id: i64 },
    /// The position is not tracked any more; it is kept until the subscriber rejoins.
    Resting {
        subscription_id: i64,
        counter_id: i32,
    },
    /// The subscriber does not rejoin: its counter is to be freed.
    Dropped {
        subscription_id: i64,
        position: Counter,
    },
    /// The resting time is over: set the join position, call `rejoin`, report the image as available.
    Rested {
        subscription_id: i64,
        position: Counter,
    },
}

impl UntetheredEvent {
    /// Logs the state change.
    pub(crate) fn log(&self, events: &EventLog, stream_id: i32, session_id: i32) {
        let (subscription_id, from, to) = match *self {
            Self::Unavailable { subscription_id } => (subscription_id, "ACTIVE", "LINGER"),
            Self::Resting {
                subscription_id, ..
            } => (subscription_id, "LINGER", "RESTING"),
            Self::Dropped {
                subscription_id, ..
            } => (subscription_id, "LINGER", "CLOSED"),
            Self::Rested {
                subscription_id, ..
            } => (subscription_id, "RESTING", "ACTIVE"),
        };
        events.log(
            EventCode::UntetheredSubscriptionStateChange,
            &[
                FieldValue::Long(subscription_id),
                FieldValue::Int(stream_id),
                FieldValue::Int(session_id),
                FieldValue::Text(from),
                FieldValue::Text(to),
            ],
        );
    }
}

impl Subscriber {
    pub(crate) fn new(
        subscription_id: i64,
        position: Counter,
        tether: bool,
        rejoin: bool,
        now_ns: i64,
    ) -> Self {
        let tether = if tether {
            TetherMode::Tethered
        } else {
            TetherMode::Untethered {
                rejoin,
                phase: UntetheredState::Active,
                since_ns: now_ns,
            }
        };
        Self {
            subscription_id,
            position,
            tether,
        }
    }

    /// Returns true if the position is tracked for the limit of the stream.
    pub(super) fn is_tracked(&self) -> bool {
        !matches!(
            self.tether,
            TetherMode::Untethered {
                phase: UntetheredState::Resting,
                ..
            }
        )
    }

    /// Advances the state of an untethered subscriber when its timeout has expired.
    pub(super) fn tick(
        &mut self,
        limit: i64,
        now_ns: i64,
        timeouts: &Untethered,
    ) -> Option<UntetheredEvent> {
        let TetherMode::Untethered {
            rejoin,
            phase,
            since_ns,
        } = &mut self.tether
        else {
            return None;
        };
        let waited_ns = now_ns.saturating_sub(*since_ns);
        let subscription_id = self.subscription_id;
        match *phase {
            UntetheredState::Active if self.position.get() > limit => *since_ns = now_ns,
            UntetheredState::Active if waited_ns >= timeouts.window_limit_timeout_ns => {
                (*phase, *since_ns) = (UntetheredState::Lingering, now_ns);
                return Some(UntetheredEvent::Unavailable { subscription_id });
            }
            UntetheredState::Lingering if waited_ns >= timeouts.linger_ns() => {
                if !*rejoin {
                    return Some(UntetheredEvent::Dropped {
                        subscription_id,
                        position: self.position.clone(),
                    });
                }
                (*phase, *since_ns) = (UntetheredState::Resting, now_ns);
                return Some(UntetheredEvent::Resting {
                    subscription_id,
                    counter_id: self.position.id(),
                });
            }
            UntetheredState::Resting if waited_ns >= timeouts.resting_timeout_ns => {
                return Some(UntetheredEvent::Rested {
                    subscription_id,
                    position: self.position.clone(),
                });
            }
            UntetheredState::Active | UntetheredState::Lingering | UntetheredState::Resting => {}
        }
        None
    }

    /// Returns true while the image is reported as available to the client.
    pub(super) fn has_image(&self) -> bool {
        match self.tether {
            TetherMode::Tethered => true,
            TetherMode::Untethered { phase, .. } => phase == UntetheredState::Active,
        }
    }

    /// Tracks the position of a rested subscriber again. The caller has set it.
    pub(super) fn rejoin(&mut self, now_ns: i64) {
        if let TetherMode::Untethered {
            phase, since_ns, ..
        } = &mut self.tether
        {
            *phase = UntetheredState::Active;
            *since_ns = now_ns;
        }
    }
}
