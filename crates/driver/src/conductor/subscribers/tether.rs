//! One subscriber: where it is, and whether it may be left behind.

use taran_core::counters::Counter;
use taran_protocol::event::EventCode;
use taran_protocol::uri::Untethered;

use crate::event_log::{EventLog, Fact};

/// One subscription reading one log.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// Id of the entry among the driver's subscriptions.
    pub(crate) subscription_id: i64,
    /// Its `sub-pos` counter.
    pub(crate) position: Counter,
    tether: Tether,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tether {
    Tethered,
    Untethered {
        rejoin: bool,
        phase: Phase,
        since_ns: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Active,
    Lingering,
    Resting,
}

/// What the owner of the log has to do for an untethered subscriber.
#[derive(Debug)]
pub(crate) enum TetherEvent {
    /// Tell the client that the image is gone; the position still counts.
    Unavailable { subscription_id: i64 },
    /// The position no longer counts (it is kept for the subscriber's return).
    Resting {
        subscription_id: i64,
        counter_id: i32,
    },
    /// The subscriber does not come back: its counter is to be freed.
    Dropped {
        subscription_id: i64,
        position: Counter,
    },
    /// The resting time is over: set the join position, call `rejoin`, tell the client.
    Rested {
        subscription_id: i64,
        position: Counter,
    },
}

impl TetherEvent {
    /// Logs the step, which is one of a stream.
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
                Fact::Long(subscription_id),
                Fact::Int(stream_id),
                Fact::Int(session_id),
                Fact::Text(from),
                Fact::Text(to),
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
            Tether::Tethered
        } else {
            Tether::Untethered {
                rejoin,
                phase: Phase::Active,
                since_ns: now_ns,
            }
        };
        Self {
            subscription_id,
            position,
            tether,
        }
    }

    /// Whether the position holds the stream back.
    pub(super) fn counts(&self) -> bool {
        !matches!(
            self.tether,
            Tether::Untethered {
                phase: Phase::Resting,
                ..
            }
        )
    }

    /// The next step of an untethered subscriber, if its time has come.
    pub(super) fn tick(
        &mut self,
        limit: i64,
        now_ns: i64,
        timeouts: &Untethered,
    ) -> Option<TetherEvent> {
        let Tether::Untethered {
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
            Phase::Active if self.position.get() > limit => *since_ns = now_ns,
            Phase::Active if waited_ns >= timeouts.window_limit_timeout_ns => {
                (*phase, *since_ns) = (Phase::Lingering, now_ns);
                return Some(TetherEvent::Unavailable { subscription_id });
            }
            Phase::Lingering if waited_ns >= timeouts.linger_ns() => {
                if !*rejoin {
                    return Some(TetherEvent::Dropped {
                        subscription_id,
                        position: self.position.clone(),
                    });
                }
                (*phase, *since_ns) = (Phase::Resting, now_ns);
                return Some(TetherEvent::Resting {
                    subscription_id,
                    counter_id: self.position.id(),
                });
            }
            Phase::Resting if waited_ns >= timeouts.resting_timeout_ns => {
                return Some(TetherEvent::Rested {
                    subscription_id,
                    position: self.position.clone(),
                });
            }
            Phase::Active | Phase::Lingering | Phase::Resting => {}
        }
        None
    }

    /// Whether the client has been told of the image and not of its end.
    pub(super) fn has_image(&self) -> bool {
        match self.tether {
            Tether::Tethered => true,
            Tether::Untethered { phase, .. } => phase == Phase::Active,
        }
    }

    /// It has rested, and its position has been set: it counts again.
    pub(super) fn rejoin(&mut self, now_ns: i64) {
        if let Tether::Untethered {
            phase, since_ns, ..
        } = &mut self.tether
        {
            *phase = Phase::Active;
            *since_ns = now_ns;
        }
    }
}
