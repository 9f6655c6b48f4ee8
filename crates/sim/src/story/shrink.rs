//! Makes a story that fails short: leaves events out as long as it fails in the same way, then makes what is left simpler.
//!
//! The order of turns, and which datagrams are lost, come from the seed of the world, and mean something else in a story
//! of other events. So a shorter story is tried with a few seeds before it counts as one that does not fail.

use super::attempt::silently;
use super::{Deed, Failure, Plan, Publish, Subscribe};

/// With how many seeds a shorter story is tried.
const SEEDS: u64 = 3;

/// What has become of a story.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The short one.
    pub plan: Plan,
    /// How that fails.
    pub failure: Failure,
    /// How many stories were played for it.
    pub attempts: u64,
}

/// Makes `plan`, of which `play` says how it fails, as short as can be until `is_over` says that so many attempts are
/// enough.
pub fn shrink(
    plan: &Plan,
    failure: &Failure,
    is_over: impl Fn(u64) -> bool,
    play: impl Fn(&Plan) -> Option<Failure>,
) -> Shrunk {
    let mut search = Search {
        best: plan.clone(),
        failure: failure.clone(),
        attempts: 0,
        is_over,
        play,
    };
    silently(|| search.run());
    Shrunk {
        plan: search.best,
        failure: search.failure,
        attempts: search.attempts,
    }
}

struct Search<P, O> {
    best: Plan,
    failure: Failure,
    attempts: u64,
    is_over: O,
    play: P,
}

impl<P: Fn(&Plan) -> Option<Failure>, O: Fn(u64) -> bool> Search<P, O> {
    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.leave_out_events();
            self.leave_out_hosts();
            self.simplify();
            if self.best == before || self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        (self.is_over)(self.attempts)
    }

    /// Keeps a plan if it fails in the same way.
    fn keep(&mut self, mut plan: Plan) -> bool {
        if plan == self.best {
            return false;
        }
        for _ in 0..SEEDS {
            if self.is_over() {
                return false;
            }
            self.attempts += 1;
            match (self.play)(&plan) {
                Some(failure) if failure.kind == self.failure.kind => {
                    (self.best, self.failure) = (plan, failure);
                    return true;
                }
                _ => plan.seed = plan.seed.wrapping_add(1),
            }
        }
        false
    }

    /// Delta debugging: large parts first, then smaller ones, from the end of the story.
    fn leave_out_events(&mut self) {
        let mut part = self.best.events.len().div_ceil(2).max(1);
        loop {
            let mut end = self.best.events.len();
            while end > 0 {
                let start = end.saturating_sub(part);
                let mut plan = self.best.clone();
                plan.events.drain(start..end);
                self.keep(plan);
                end = start;
            }
            if part == 1 {
                return;
            }
            part = part.div_ceil(2).max(1);
        }
    }

    /// Hosts are numbered: only the last can go.
    fn leave_out_hosts(&mut self) {
        while self.best.hosts.len() > 1 {
            let mut plan = self.best.clone();
            plan.hosts.pop();
            if !self.keep(plan) {
                return;
            }
        }
    }

    fn simplify(&mut self) {
        let mut plan = self.best.clone();
        for host in &mut plan.hosts {
            *host = super::HostPlan {
                ipv6: host.ipv6,
                ..super::HostPlan::default()
            };
        }
        self.keep(plan);
        for index in 0..self.best.hosts.len() {
            let names: Vec<_> = self.best.hosts[index].options.keys().cloned().collect();
            for name in names {
                let mut plan = self.best.clone();
                plan.hosts[index].options.remove(&name);
                self.keep(plan);
            }
            let mut plan = self.best.clone();
            plan.hosts[index].ahead_ms = 0;
            self.keep(plan);
        }
        for index in 0..self.best.events.len() {
            self.come_sooner(index);
            let mut change = 0;
            while let Some(deed) = simpler(&self.best.events[index].deed, change) {
                let mut plan = self.best.clone();
                plan.events[index].deed = deed;
                // What could be made simpler once may be made simpler again.
                if !self.keep(plan) {
                    change += 1;
                }
            }
        }
    }

    /// Less time before an event, and so for all that follow. Events need not be in the order of their times: one whose time
    /// has passed follows at once.
    fn come_sooner(&mut self, index: usize) {
        let before = index
            .checked_sub(1)
            .map_or(0, |before| self.best.events[before].at_ms);
        let gap = self.best.events[index].at_ms.saturating_sub(before);
        for less in [gap, gap / 2] {
            let mut plan = self.best.clone();
            plan.events[index..]
                .iter_mut()
                .for_each(|event| event.at_ms = event.at_ms.saturating_sub(less));
            if less > 0 && self.keep(plan) {
                return;
            }
        }
    }
}

/// The ways in which an event can be made simpler, by number; each changes the event, or is none.
fn simpler(deed: &Deed, change: usize) -> Option<Deed> {
    let mut ways = Vec::new();
    let mut way = |make: &dyn Fn(&mut Deed)| {
        let mut simple = deed.clone();
        make(&mut simple);
        if simple != *deed {
            ways.push(simple);
        }
    };
    for field in 0..9 {
        way(&|deed| {
            if let Deed::Weather(weather)
            | Deed::Link {
                weather: Some(weather),
                ..
            } = deed
            {
                *weather.fields()[field] = 0;
            }
        });
    }
    way(&|deed| halve(deed));
    way(&|deed| {
        if let Deed::Publish(publish) | Deed::Answer { publish, .. } = deed {
            publish.pause_ms = 0;
        }
    });
    way(&|deed| {
        if let Deed::Publish(publish) = deed {
            publish.exclusive = false;
        }
    });
    way(&|deed| {
        if let Deed::Publish(publish) = deed {
            publish.lengths = crate::Lengths::Small;
        }
    });
    way(&|deed| {
        if let Deed::Subscribe(subscribe) = deed {
            subscribe.laziness = 0;
        }
    });
    for index in 0..6 {
        way(&|deed| match deed {
            Deed::Publish(publish) => publish.channel = without(&publish.channel, index),
            Deed::Subscribe(subscribe) => subscribe.channel = without(&subscribe.channel, index),
            _ => {}
        });
        way(&|deed| match deed {
            Deed::Publish(Publish {
                destinations: list, ..
            })
            | Deed::Subscribe(Subscribe { sources: list, .. })
                if index < list.len() =>
            {
                list.remove(index);
            }
            _ => {}
        });
    }
    ways.into_iter().nth(change)
}

fn halve(deed: &mut Deed) {
    match deed {
        Deed::Publish(publish) | Deed::Answer { publish, .. } => publish.messages /= 2,
        Deed::More { messages, .. } => *messages /= 2,
        Deed::StallClient { ms, .. }
        | Deed::StallDriver { ms, .. }
        | Deed::StallHost { ms, .. } => *ms /= 2,
        Deed::StepClock { ms, .. } => *ms /= 2,
        _ => {}
    }
}

/// A channel without its parameter number `index`, but for the first one, which says where.
fn without(channel: &str, index: usize) -> String {
    let mut parts: Vec<_> = channel.split('|').collect();
    if index + 1 < parts.len() {
        parts.remove(index + 1);
    }
    parts.join("|")
}
