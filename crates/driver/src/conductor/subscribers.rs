//! Where the subscribers of one log are: IPC publications, network publications for their spies, and images each hold
//! one such list.
//!
//! A position is a counter that its client writes, so what is read here may be anything; users of the minimum and
//! maximum clamp them to what the log can hold.
//!
//! Untethered subscribers (`tether=false`, spec/01 §9.6, spec/02 §5.9) that stay behind the limit are told that the
//! image is unavailable, linger, rest, and then join again. `tick` moves them through these states and returns what
//! has to be done about it; tethered subscribers are never touched.

use taran_core::counters::Counter;
use taran_protocol::event::EventCode;
use taran_protocol::position::FRAME_ALIGNMENT;
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
    fn counts(&self) -> bool {
        !matches!(
            self.tether,
            Tether::Untethered {
                phase: Phase::Resting,
                ..
            }
        )
    }

    /// The next step of an untethered subscriber, if its time has come.
    fn tick(&mut self, limit: i64, now_ns: i64, timeouts: &Untethered) -> Option<TetherEvent> {
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
    fn has_image(&self) -> bool {
        match self.tether {
            Tether::Tethered => true,
            Tether::Untethered { phase, .. } => phase == Phase::Active,
        }
    }
}

/// The subscribers of one log.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    list: Vec<Subscriber>,
    /// Subscriptions that lagged and said that they do not come back.
    dropped: Vec<i64>,
}

impl Subscribers {
    pub(crate) fn add(&mut self, subscriber: Subscriber) {
        self.list.push(subscriber);
    }

    /// Takes a subscription out. Its counter is for the caller to free.
    pub(crate) fn remove(&mut self, subscription_id: i64) -> Option<Subscriber> {
        self.dropped.retain(|dropped| *dropped != subscription_id);
        let index = self
            .list
            .iter()
            .position(|s| s.subscription_id == subscription_id)?;
        Some(self.list.swap_remove(index))
    }

    /// Takes all out, for the end of the log.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Subscriber> + '_ {
        self.list.drain(..)
    }

    /// Subscriptions that believe the image is available.
    pub(crate) fn with_image(&self) -> impl Iterator<Item = i64> + '_ {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .map(|s| s.subscription_id)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Subscriber> + '_ {
        self.list.iter()
    }

    /// Subscription and counter id of each.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, i32)> + '_ {
        self.list
            .iter()
            .map(|s| (s.subscription_id, s.position.id()))
    }

    /// Nobody is attached, not even a resting subscriber.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a subscription was dropped for good.
    pub(crate) fn has_dropped(&self, subscription_id: i64) -> bool {
        self.dropped.contains(&subscription_id)
    }

    /// Whether any position counts for the limit.
    pub(crate) fn any_counts(&self) -> bool {
        self.list.iter().any(Subscriber::counts)
    }

    /// Lowest and highest position that counts; `None` without subscribers.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        for subscriber in self.list.iter().filter(|s| s.counts()) {
            let position = subscriber.position.get();
            range = Some(match range {
                None => (position, position),
                Some((min, max)) => (min.min(position), max.max(position)),
            });
        }
        range
    }

    /// Where a new subscriber joins: not ahead of anybody, nor of `end`, nor in what is cleaned already.
    pub(crate) fn join_position(&self, clean: i64, end: i64) -> i64 {
        let slowest = self.range().map_or(end, |(min, _)| min);
        slowest.min(end).max(clean) & !i64::from(FRAME_ALIGNMENT - 1)
    }

    /// Whether every subscriber has consumed up to `position`. One that was told that the image is gone reads no more.
    pub(crate) fn all_reached(&self, position: i64) -> bool {
        self.list
            .iter()
            .filter(|s| s.has_image())
            .all(|s| s.position.get() >= position)
    }

    /// A rested subscriber, whose position has been set, counts again.
    pub(crate) fn rejoin(&mut self, subscription_id: i64, now_ns: i64) {
        let found = self
            .list
            .iter_mut()
            .find(|s| s.subscription_id == subscription_id);
        if let Some(Subscriber {
            tether: Tether::Untethered {
                phase, since_ns, ..
            },
            ..
        }) = found
        {
            *phase = Phase::Active;
            *since_ns = now_ns;
        }
    }

    /// Moves untethered subscribers on. `limit` is the position below or at which one counts as left behind.
    pub(crate) fn tick(
        &mut self,
        limit: i64,
        now_ns: i64,
        timeouts: &Untethered,
    ) -> Vec<TetherEvent> {
        let mut events = Vec::new();
        self.list.retain_mut(|subscriber| {
            let event = subscriber.tick(limit, now_ns, timeouts);
            let stays = !matches!(event, Some(TetherEvent::Dropped { .. }));
            if !stays {
                self.dropped.push(subscriber.subscription_id);
            }
            events.extend(event);
            stays
        });
        events
    }
}
