// SPDX-License-Identifier: Apache-2.0
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran_core::counters::{Counter, CounterTable};
use taran_core::memory::Region;

use super::*;
use crate::context::TableRow;
use crate::testing::at;

/// Fake system resolver that answers on request.
#[derive(Clone, Debug, Default)]
struct System(Arc<Mutex<SystemState>>);

#[derive(Debug, Default)]
struct SystemState {
    lookups: Vec<(u64, String)>,
    completed: Vec<(u64, Resolution)>,
    polls: usize,
}

impl NameResolver for System {
    fn start(&mut self, ticket: u64, host: &str) {
        self.0
            .lock()
            .unwrap()
            .lookups
            .push((ticket, host.to_owned()));
    }

    fn cancel(&mut self, ticket: u64) {
        self.0
            .lock()
            .unwrap()
            .lookups
            .retain(|(open, _)| *open != ticket);
    }

    fn poll(&mut self) -> Option<(u64, Resolution)> {
        let mut state = self.0.lock().unwrap();
        state.polls += 1;
        state.completed.pop()
    }
}

impl System {
    fn lookups(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        state.lookups.iter().map(|(_, host)| host.clone()).collect()
    }

    fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }

    fn answer(&self, ticket: u64, found: Resolution) {
        self.0.lock().unwrap().completed.push((ticket, found));
    }
}

fn counters() -> Counters {
    let region = |length| Region::anonymous(length).unwrap();
    let table = CounterTable::new(region(4 << 16), region(1 << 16), Duration::from_secs(1));
    Counters::new(table, at(0))
}

fn names(rows: &[TableRow]) -> (HostLookups, System, Counters, Counter) {
    let mut counters = counters();
    let table = NameTable::new(rows, &mut counters).unwrap();
    let (system, longest) = (System::default(), Counter::detached());
    let lookup_times = DutyCycleTracker::new(longest.clone(), Counter::detached(), Duration::ZERO);
    let names = HostLookups::new(None, table, Box::new(system.clone()), lookup_times, at(0));
    (names, system, counters, longest)
}

fn row(name: &str, first: &str, other: &str) -> TableRow {
    TableRow {
        name: name.to_owned(),
        first: first.to_owned(),
        other: other.to_owned(),
    }
}

#[test]
fn lookup_uses_table_before_system() {
    let rows = [row("a", "10.0.0.1", "b.host"), row("c", "c.host", "")];
    let (mut names, system, mut counters, _) = names(&rows);
    let ids: Vec<i32> = counters.ids_of_type(2001);
    assert_eq!(ids.len(), 2);
    assert_eq!(
        counters.label(ids[0]),
        "NameEntry{name='a', initialResolutionHost='10.0.0.1', reResolutionHost='b.host'}"
    );
    let ticket = names.start_lookup(Requester::Command, "a");
    let result = names.poll(&mut counters).unwrap();
    assert_eq!((result.ticket, &*result.host), (ticket, "a"));
    assert_eq!(result.resolution, Ok(vec!["10.0.0.1".parse().unwrap()]));

    counters.counter(ids[0]).set(1);
    names.start_lookup(Requester::Command, "a");
    names.start_lookup(Requester::Command, "c");
    names.start_lookup(Requester::Command, "d");
    assert_eq!(system.lookups(), ["b.host", "c.host", "d"]);

    counters.counter(ids[0]).set(-1);
    names.start_lookup(Requester::Command, "a");
    let error = names.poll(&mut counters).unwrap().resolution.unwrap_err();
    assert!(error.contains("Unable to resolve host=(a)"), "{error}");
}

#[test]
fn lookup_times_out_individually() {
    let (mut names, system, mut counters, longest) = names(&[]);
    let first = names.start_lookup(Requester::Command, "slow");
    names.do_work(at(2_000_000_000), &mut counters);
    let second = names.start_lookup(Requester::Command, "quick");
    names.start_lookup(Requester::Command, "slower");
    names.do_work(at(4_999_999_999), &mut counters);
    assert!(names.poll(&mut counters).is_none());
    names.do_work(at(5_000_000_000), &mut counters);
    let given_up = names.poll(&mut counters).unwrap();
    assert_eq!(given_up.ticket, first);
    assert_eq!(
        given_up.resolution,
        Err("no answer within 5000 ms".to_owned())
    );
    assert_eq!(longest.get(), 5_000_000_000);
    assert!(names.poll(&mut counters).is_none());
    assert_eq!(system.lookups(), ["quick", "slower"]);
    system.answer(second, Ok(vec!["10.0.0.2".parse().unwrap()]));
    system.answer(first, Ok(vec!["10.0.0.1".parse().unwrap()]));
    assert_eq!(names.poll(&mut counters).unwrap().ticket, second);
    assert!(names.poll(&mut counters).is_none(), "too late");
}

#[test]
fn poll_without_pending_lookups_skips_system() {
    let (mut names, system, mut counters, _) = names(&[]);
    assert!(names.poll(&mut counters).is_none());
    assert_eq!((names.has_pending_lookups(), system.polls()), (false, 0));
    let cancelled = names.start_lookup(Requester::Command, "cancelled");
    assert!(names.has_pending_lookups());
    names.cancel(cancelled);
    system.answer(cancelled, Err("late".to_owned()));
    assert!(names.poll(&mut counters).is_none());
    assert_eq!((names.has_pending_lookups(), system.polls()), (false, 0));

    let wanted = names.start_lookup(Requester::Command, "wanted");
    system.answer(wanted, Ok(vec!["10.0.0.2".parse().unwrap()]));
    assert_eq!(names.poll(&mut counters).unwrap().ticket, wanted);
    assert!(names.poll(&mut counters).is_none());
    let polls = system.polls();
    assert!(names.poll(&mut counters).is_none());
    assert_eq!(
        (names.has_pending_lookups(), system.polls()),
        (false, polls)
    );
}

#[test]
fn start_lookup_once_ignores_pending_requester() {
    let (mut names, system, mut counters, _) = names(&[]);
    let requester = Requester::SendEndpoint(EndpointId(3));
    names.start_lookup_once(requester, "peer");
    names.start_lookup_once(requester, "peer");
    names.start_lookup_once(Requester::SendEndpoint(EndpointId(4)), "peer");
    assert_eq!(system.lookups(), ["peer", "peer"]);
    names.cancel(0);
    system.answer(1, Err("gone".to_owned()));
    let result = names.poll(&mut counters).unwrap();
    assert_eq!(result.requester, Requester::SendEndpoint(EndpointId(4)));
    names.start_lookup_once(requester, "peer");
    assert_eq!(system.lookups().len(), 2);
}

#[test]
fn lookup_and_result_are_logged() {
    let rows = [row("a", "10.0.0.1", "b.host")];
    let (mut names, system, mut counters, _) = names(&rows);
    let (events, mut source) = EventLog::captured("NAME_RESOLUTION_LOOKUP,NAME_RESOLUTION_RESOLVE");
    names.log_to(events);
    let entry = counters.counter(counters.ids_of_type(2001)[0]);
    for value in [0, 1, -1] {
        entry.set(value);
        names.start_lookup(Requester::Command, "a");
    }
    names.start_lookup_once(Requester::SendEndpoint(EndpointId(3)), "peer");
    let lookups: Vec<String> = source.lines().lines().map(fields).collect();
    assert_eq!(
        lookups,
        [
            "resolver=csv_table duration_ns=0 name=a is_re_lookup=0 resolved_name=10.0.0.1",
            "resolver=csv_table duration_ns=0 name=a is_re_lookup=0 resolved_name=b.host",
            "resolver=csv_table duration_ns=0 name=a is_re_lookup=0 resolved_name=",
            "resolver=default duration_ns=0 name=peer is_re_lookup=1 resolved_name=peer",
        ]
    );
    names.do_work(at(1_000), &mut counters);
    system.answer(3, Ok(vec!["10.0.0.7".parse().unwrap()]));
    while names.poll(&mut counters).is_some() {}
    let logged = source.lines();
    let last = logged.lines().last().map(fields).unwrap();
    assert_eq!(
        last,
        "duration_ns=1000 name=peer is_re_resolution=1 address=10.0.0.7"
    );
}

/// Returns the fields of an event log line.
fn fields(line: &str) -> String {
    line.split_once("]: ").unwrap().1.to_owned()
}
