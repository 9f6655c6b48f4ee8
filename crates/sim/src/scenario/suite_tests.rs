// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use serde::{Deserialize, Serialize};
use taran_storage::{Disk as _, DiskQueue as _, ErrorKind, OpenOptions, Request};

use super::definition::STREAMS;
use super::*;
use crate::check::{Violation, violation};
use crate::process::{AfterKill, CycleContext, HostEnv, Invariant, Process};
use crate::{HostIndex, HostSpec, ProcessId, World};

/// A process that takes the items of its host twenty at a time. A kill loses those that are pending.
struct Counter;

/// Items by process, and how many of them a kill has lost.
#[derive(Default)]
struct Items {
    pending: Vec<u64>,
    lost: u64,
}

impl Process for Counter {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let host = context.env().host().number();
        let pending = &mut context.shared::<Items>().pending;
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
enum CounterOp {
    Add { host: usize, items: u64 },
    Kill { host: usize },
}

impl Operation for CounterOp {
    const NAME: &'static str = "counter";

    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let mut op = || {
            let host = random.usize(0..setting.hosts);
            let op = if random.u32(0..4) == 0 {
                Self::Kill { host }
            } else {
                let items = random.u64(0..8);
                Self::Add { host, items }
            };
            (random.u64(0..=setting.duration_ms), op)
        };
        (0..40).map(|_| op()).collect()
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
        .operation::<CounterOp>()
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
        Op::Custom(custom) => CounterOp::deserialize(&custom.operation).unwrap(),
        other => panic!("{other:?}"),
    };
    let ops: Vec<CounterOp> = shrunk.scenario.ops.iter().map(items).collect();
    let added = ops.iter().map(|op| match op {
        CounterOp::Add { items, .. } => *items,
        CounterOp::Kill { .. } => 0,
    });
    // Ten items need two additions of at most seven, and one kill loses them.
    assert_eq!((ops.len(), added.sum()), (3, 10), "{text}");

    let replayed = Scenario::from_text(&text).unwrap();
    let failure = suite.run(&replayed).unwrap_err();
    assert_eq!(failure.text, shrunk.failure.text);
}

#[test]
fn operations_of_a_crate_run_among_those_of_the_streams() {
    let suite = Suite::streams()
        .named("streams and counters")
        .operation::<CounterOp>()
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
fn power_cuts_and_disk_faults_run_among_the_operations_of_the_streams() {
    let suite = Suite::streams()
        .named("streams and power cuts")
        .power_cuts()
        .operation::<DiskFault>()
        .operation::<BitRot>()
        .set_up(|world| world.shared_mut::<Items>().pending = vec![0; world.host_count()])
        .boot(|world, host| {
            world.spawn(host, |_| Counter);
        })
        .finish(|world| {
            let is_on = (0..world.host_count()).all(|host| {
                let host = HostIndex::at(host);
                let mut counters = world.processes::<Counter>().map(|(id, _)| id);
                let runs =
                    counters.any(|id| world.is_alive(id) && world.host_of_process(id) == host);
                runs && world.is_on(host) && world.has_driver(host)
            });
            if is_on {
                Ok(())
            } else {
                Err(Violation("a host has not booted".to_owned()))
            }
        });
    let mut coverage = Coverage::default();
    for seed in 0..6 {
        match suite.run(&suite.random(seed)) {
            Ok(happened) => coverage.merge(&happened),
            Err(failure) => panic!("seed {seed}: {}", failure.text),
        }
    }
    for what in [
        "power cut",
        "boot",
        "operation: disk fault",
        "drivers restarted",
    ] {
        assert!(coverage.get(what) > 5, "{what}: {}", coverage.get(what));
    }
}

#[test]
fn each_disk_fault_changes_what_the_disk_does_until_it_ends() {
    use DiskFault::{FailNext, Fill, Grow, SetErrorRate, SetStalls, Slow};
    let mut world = World::new(1);
    let host = world.add_host_without_driver(HostSpec::new());
    let id = world.spawn(host, |_| Counter);
    let disk = world.disk(host).process();
    let options = OpenOptions::create_new();
    let file = disk.open("/file".as_ref(), options).unwrap();
    let mut apply = |fault: DiskFault| assert!(fault.apply(&mut world), "{fault:?}");

    apply(FailNext {
        host: 0,
        operation: Failing::Write,
    });
    assert!(matches!(
        file.write_at(b"x", 0).unwrap_err().kind,
        ErrorKind::Io { .. }
    ));
    file.write_at(b"x", 0).unwrap();

    apply(SetErrorRate {
        host: 0,
        operation: Failing::Read,
        per_mille: 1_000,
    });
    let mut buffer = [0; 1];
    assert!((0..3).all(|_| file.read_at(&mut buffer, 0).is_err()));
    apply(SetErrorRate {
        host: 0,
        operation: Failing::Read,
        per_mille: 0,
    });
    file.read_at(&mut buffer, 0).unwrap();

    apply(Fill {
        host: 0,
        left_bytes: 4_096,
    });
    assert!(file.write_at(&[1; 16_384], 0).unwrap_err().is_full());
    apply(Grow { host: 0 });
    file.write_at(&[1; 16_384], 0).unwrap();

    let mut service_ns = |fault: DiskFault| {
        apply(fault);
        let mut queue = disk.queue(1, 8);
        let path = "/file".into();
        let options = OpenOptions::read();
        queue.submit(1, Request::Open { path, options }).unwrap();
        assert!(queue.poll(0).is_none());
        (1..)
            .find(|ms| queue.poll(ms * 10_000).is_some())
            .unwrap_or_default()
    };
    let normal = service_ns(Slow { host: 0, factor: 1 });
    assert!(
        service_ns(Slow {
            host: 0,
            factor: 100
        }) > 10 * normal
    );
    service_ns(Slow { host: 0, factor: 1 });
    let stalls = SetStalls {
        host: 0,
        per_mille: 1_000,
        longest_ms: 10_000,
    };
    assert!(service_ns(stalls) > 100 * normal);

    assert!(BitRot { host: 0 }.apply(&mut world));
    assert!(!DiskFault::Grow { host: 1 }.apply(&mut world));
    assert!(world.is_alive(id));
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
