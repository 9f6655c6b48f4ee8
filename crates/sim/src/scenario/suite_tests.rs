use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::STREAMS;
use super::*;
use crate::check::{Violation, violation};
use crate::process::{AfterKill, HostEnv, Invariant, Process, Turn};
use crate::{HostIndex, ProcessId, World};

/// A process that takes the items of its host twenty at a time. A kill loses those that are pending.
struct Counter;

/// Items by process, and how many of them a kill has lost.
#[derive(Default)]
struct Items {
    pending: Vec<u64>,
    lost: u64,
}

impl Process for Counter {
    fn do_work(&mut self, turn: &mut Turn<'_>) -> Result<usize, Violation> {
        let host = turn.env().host().number();
        let pending = &mut turn.shared::<Items>().pending;
        let done = std::mem::take(&mut pending[host]);
        // Items are only taken every now and then, so that a kill finds some.
        if done < 20 {
            pending[host] = done;
            return Ok(0);
        }
        Ok(1)
    }

    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Drop
    }

    fn describe(&self) -> String {
        "counter".to_owned()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Deed {
    Add { host: usize, items: u64 },
    Kill { host: usize },
}

impl Operation for Deed {
    const NAME: &'static str = "counter";

    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let mut deed = || {
            let host = random.usize(0..setting.hosts);
            let deed = if random.u32(0..4) == 0 {
                Self::Kill { host }
            } else {
                let items = random.u64(0..8);
                Self::Add { host, items }
            };
            (random.u64(0..=setting.duration_ms), deed)
        };
        (0..40).map(|_| deed()).collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        let (Self::Add { host, .. } | Self::Kill { host }) = self;
        let on_host = |(id, _): &(ProcessId, &Counter)| {
            world.host_of_process(*id).number() == *host && world.is_alive(*id)
        };
        let Some((id, _)) = world.processes::<Counter>().find(on_host) else {
            return false;
        };
        if let Self::Add { host, items } = self {
            world.shared_mut::<Items>().pending[*host] += items;
            return true;
        }
        world.kill(id);
        let items = world.shared_mut::<Items>();
        let lost = std::mem::take(&mut items.pending[*host]);
        items.lost = items.lost.max(lost);
        world.restart(id, |_: &mut HostEnv| Counter);
        true
    }

    fn simpler(&self) -> Vec<Self> {
        match *self {
            Self::Add { host, items } if items > 1 => vec![Self::Add {
                host,
                items: items - 1,
            }],
            _ => Vec::new(),
        }
    }
}

/// A kill loses less than ten items.
struct FewLost;

impl Invariant for FewLost {
    fn name(&self) -> &'static str {
        "few lost"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        match world.shared::<Items>() {
            Some(items) if items.lost >= 10 => violation!("{} items lost", items.lost),
            _ => Ok(()),
        }
    }
}

fn start(world: &mut World) {
    let hosts = world.host_count();
    world.shared_mut::<Items>().pending = vec![0; hosts];
    for host in (0..hosts).map(HostIndex::at) {
        world.spawn(host, |_| Counter);
    }
    world.add_invariant(FewLost);
}

fn run_on(world: &mut World) -> Result<(), Violation> {
    world.run_for(Duration::from_secs(1));
    Ok(())
}

fn suite() -> Suite {
    Suite::without_drivers("counters", 1..=3)
        .operation::<Deed>()
        .set_up(start)
        .finish(run_on)
}

#[test]
fn random_worlds_of_a_suite_find_a_defect_and_shrink_it_to_a_scenario_that_replays() {
    let suite = suite();
    let failed = (0..50).find_map(|seed| {
        let scenario = suite.random(seed);
        assert_eq!(scenario, suite.random(seed));
        let failure = suite.run(&scenario).err()?;
        Some((scenario, failure))
    });
    let (scenario, failure) = failed.unwrap();
    assert!(failure.text.contains("items lost"), "{}", failure.text);
    let shrunk = suite.shrink(&scenario, &failure, |attempts| attempts > 5_000);
    let text = shrunk.scenario.to_text();
    let items = |op: &TimedOp| match &op.op {
        Op::Custom(custom) => Deed::deserialize(&custom.operation).unwrap(),
        other => panic!("{other:?}"),
    };
    let deeds: Vec<Deed> = shrunk.scenario.ops.iter().map(items).collect();
    let added = deeds.iter().map(|deed| match deed {
        Deed::Add { items, .. } => *items,
        Deed::Kill { .. } => 0,
    });
    // Ten items need two additions of at most seven, and one kill loses them.
    assert_eq!((deeds.len(), added.sum()), (3, 10), "{text}");

    let replayed = Scenario::from_text(&text).unwrap();
    let failure = suite.run(&replayed).unwrap_err();
    assert_eq!(failure.text, shrunk.failure.text);
}

#[test]
fn operations_of_a_crate_run_among_those_of_the_streams() {
    let suite = Suite::streams()
        .named("streams and counters")
        .operation::<Deed>()
        .set_up(|world| {
            let hosts = world.host_count();
            world.shared_mut::<Items>().pending = vec![0; hosts];
            for host in (0..hosts).map(HostIndex::at) {
                world.spawn(host, |_| Counter);
            }
        });
    let scenario = suite.random(3);
    let is_custom = |op: &&TimedOp| matches!(op.op, Op::Custom(_));
    assert_eq!(scenario.ops.iter().filter(is_custom).count(), 40);
    assert!(scenario.ops.len() > 60, "{}", scenario.ops.len());
    assert!(scenario.ops.is_sorted_by_key(|op| op.at_ms));
    let coverage = suite.run(&scenario).unwrap();
    assert_eq!(coverage.get("operation: counter"), 40);
    assert!(coverage.get("operation: publish") > 0);
}

#[test]
fn scenario_of_another_suite_is_refused() {
    let scenario = suite().random(1);
    let failure = Suite::streams().run(&scenario).unwrap_err();
    assert!(
        failure.text.contains("--suite counters"),
        "{}",
        failure.text
    );
    let mut scenario = scenario;
    scenario.suite = STREAMS.to_owned();
    let failure = Suite::streams().run(&scenario).unwrap_err();
    assert!(
        failure.text.contains("no operation `counter`"),
        "{}",
        failure.text
    );
    let text = suite().random(1).to_text().replace("\"items\"", "\"item\"");
    let damaged = Scenario::from_text(&text).unwrap();
    let failure = suite().run(&damaged).unwrap_err();
    assert!(failure.text.contains("missing field"), "{}", failure.text);
}
