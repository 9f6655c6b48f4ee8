// SPDX-License-Identifier: Apache-2.0
//! Membership in groups, by scripts.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

use std::net::IpAddr;

use taran_ether::{
    Frame, MacAddress, MembershipError, MembershipMessage, MembershipVersion, Memberships, Payload,
    RecordKind, Verification, checksum,
};

const SECOND: i64 = 1_000_000_000;
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A frame with an IGMP message from 10.0.0.254 to a group.
fn igmp(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![1, 0, 0x5E, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
    let total = 20 + message.len() as u8;
    frame.extend([
        0x45, 0, 0, total, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 254, 224, 0, 0, 1,
    ]);
    frame.extend(message);
    for (start, end, at) in [(14, 34, 24), (34, frame.len(), 36)] {
        let sum = checksum::checksum(&frame[start..end]);
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// Passes a query of IGMP to the table.
fn query(table: &mut Memberships, message: &[u8], now: i64) {
    let frame = igmp(message);
    let parsed = Frame::parse(&frame, Verification::STRICT).unwrap();
    let Payload::Membership(_, MembershipMessage::Query(query)) = parsed.payload else {
        panic!("{parsed:?}");
    };
    table.query(&query, now);
}

fn reports(table: &mut Memberships, now: i64) -> Vec<(MembershipVersion, RecordKind, IpAddr)> {
    let due = std::iter::from_fn(|| table.poll(now));
    due.map(|report| (report.version, report.record.kind, report.record.group))
        .collect()
}

/// Lets a second pass in which everything that is due is sent.
fn settle(table: &mut Memberships, now: i64) {
    while let Some(due) = table.next_deadline_ns() {
        assert!(due <= now + SECOND);
        reports(table, due);
    }
}

#[test]
fn change_is_reported_twice_within_a_second() {
    let group = ip("ff18::1");
    let mut table = Memberships::new(4, 1);
    table.join(group, 0).unwrap();
    table.join(group, 0).unwrap();
    let joined = (MembershipVersion::V3, RecordKind::ToExclude, group);
    assert_eq!(reports(&mut table, 0), [joined]);
    let due = table.next_deadline_ns().unwrap();
    assert!(due > 0 && due <= SECOND);
    assert_eq!(reports(&mut table, due - 1), []);
    assert_eq!(reports(&mut table, due), [joined]);
    assert_eq!(table.next_deadline_ns(), None);

    assert!(table.leave(group, 5 * SECOND));
    assert!(table.contains(group));
    assert_eq!(table.next_deadline_ns(), None);
    assert!(table.leave(group, 5 * SECOND));
    assert!(!table.contains(group));
    assert!(!table.leave(group, 5 * SECOND));
    let left = (MembershipVersion::V3, RecordKind::ToInclude, group);
    assert_eq!(reports(&mut table, 5 * SECOND), [left]);
    assert_eq!(reports(&mut table, 6 * SECOND), [left]);
    assert_eq!(
        (reports(&mut table, 60 * SECOND), table.next_deadline_ns()),
        (vec![], None)
    );
}

#[test]
fn query_is_answered_once_per_group_within_its_limit() {
    let (one, two) = (ip("239.0.0.1"), ip("239.0.0.2"));
    let mut table = Memberships::new(4, 7);
    table.join(one, 0).unwrap();
    table.join(two, 0).unwrap();
    settle(&mut table, 0);
    // IGMPv3, general, 10 s, robustness 2, interval 125 s; many of them are answered as one.
    let now = 10 * SECOND;
    for _ in 0..100 {
        query(
            &mut table,
            &[0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0],
            now,
        );
    }
    assert!(
        table
            .next_deadline_ns()
            .is_some_and(|due| due >= now && due <= now + 10 * SECOND)
    );
    let mut answers = reports(&mut table, now + 10 * SECOND);
    answers.sort_by_key(|(_, _, group)| *group);
    let answer = |group| (MembershipVersion::V3, RecordKind::IsExclude, group);
    assert_eq!(answers, [answer(one), answer(two)]);
    assert_eq!(table.next_deadline_ns(), None);
    // For one group and one source.
    query(
        &mut table,
        &[0x11, 10, 0, 0, 239, 0, 0, 2, 2, 125, 0, 1, 10, 0, 0, 7],
        now,
    );
    assert_eq!(reports(&mut table, now + SECOND), [answer(two)]);
    // For a group of others.
    query(
        &mut table,
        &[0x11, 10, 0, 0, 239, 0, 0, 9, 2, 125, 0, 0],
        now,
    );
    assert_eq!(table.next_deadline_ns(), None);
}

#[test]
fn older_router_gets_reports_of_its_generation_until_it_is_silent() {
    let group = ip("239.0.0.1");
    let mut table = Memberships::new(4, 7);
    table.join(group, 0).unwrap();
    settle(&mut table, 0);
    query(&mut table, &[0x11, 10, 0, 0, 0, 0, 0, 0], 0);
    let answer = reports(&mut table, SECOND);
    assert_eq!(
        answer,
        [(MembershipVersion::V2, RecordKind::IsExclude, group)]
    );
    // Another member answers first.
    query(&mut table, &[0x11, 10, 0, 0, 0, 0, 0, 0], SECOND);
    table.other_report(group, SECOND);
    assert_eq!(table.next_deadline_ns(), None);
    // A query of IGMPv1: leaving is silent.
    query(&mut table, &[0x11, 0, 0, 0, 0, 0, 0, 0], SECOND);
    assert_eq!(reports(&mut table, 11 * SECOND)[0].0, MembershipVersion::V1);
    assert!(table.leave(group, 12 * SECOND));
    assert_eq!(reports(&mut table, 12 * SECOND), []);
    // Two intervals of 125 s and the response time of 10 s later the newest generation is back.
    let end = SECOND + 260 * SECOND;
    table.join(group, end - 1).unwrap();
    assert_eq!(reports(&mut table, end - 1)[0].0, MembershipVersion::V1);
    assert_eq!(
        reports(&mut table, end + SECOND)[0].0,
        MembershipVersion::V3
    );
}

#[test]
fn router_of_the_second_generation_does_not_keep_the_first_one_alive() {
    let group = ip("239.0.0.1");
    let mut table = Memberships::new(4, 7);
    table.join(group, 0).unwrap();
    settle(&mut table, 0);
    query(&mut table, &[0x11, 0, 0, 0, 0, 0, 0, 0], 0);
    assert_eq!(reports(&mut table, 10 * SECOND)[0].0, MembershipVersion::V1);
    for time in [100, 200] {
        query(&mut table, &[0x11, 10, 0, 0, 0, 0, 0, 0], time * SECOND);
        let answers = reports(&mut table, (time + 1) * SECOND);
        assert_eq!(answers[0].0, MembershipVersion::V1, "{time}");
    }
    // The query of the first generation is forgotten after 260 s, that of the second one at 461 s.
    query(&mut table, &[0x11, 10, 0, 0, 0, 0, 0, 0], 300 * SECOND);
    let answers = reports(&mut table, 301 * SECOND);
    assert_eq!(answers[0].0, MembershipVersion::V2);
}

#[test]
fn join_of_no_group_or_beyond_the_most_is_refused() {
    let mut table = Memberships::new(1, 0);
    let host = ip("10.0.0.1");
    assert_eq!(table.join(host, 0), Err(MembershipError::NotAGroup(host)));
    // "All nodes" is never reported.
    assert_eq!(table.join(ip("224.0.0.1"), 0), Ok(()));
    assert_eq!(table.next_deadline_ns(), None);
    assert_eq!(
        table.join(ip("239.0.0.1"), 0),
        Err(MembershipError::Full { most: 1 })
    );
    assert!(table.leave(ip("224.0.0.1"), 0));
    assert_eq!(table.join(ip("239.0.0.1"), 0), Ok(()));
}

#[test]
fn due_reports_are_frames_that_parse() {
    for (group, source) in [("239.0.0.1", "10.0.0.1"), ("ff18::1", "fe80::1")] {
        let mut table = Memberships::new(1, 3);
        table.join(ip(group), 0).unwrap();
        let mut report = table.poll(0).unwrap();
        let mut buffer = [0; 200];
        for version in [MembershipVersion::V3, MembershipVersion::V2] {
            report.version = version;
            let length = report
                .write_frame(MAC, None, ip(source), &mut buffer)
                .unwrap();
            let parsed = Frame::parse(&buffer[..length], Verification::STRICT).unwrap();
            let Payload::Membership(_, message) = parsed.payload else {
                panic!("{parsed:?}");
            };
            match message {
                MembershipMessage::Records(records) => assert_eq!(records.iter().count(), 1),
                other => assert_eq!(other, MembershipMessage::Report(ip(group))),
            }
        }
        assert_eq!(
            report.write_frame(MAC, None, ip(source), &mut buffer[..20]),
            None
        );
    }
}
