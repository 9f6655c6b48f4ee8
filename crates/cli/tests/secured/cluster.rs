// SPDX-License-Identifier: Apache-2.0
//! A cluster whose members and client talk over secured channels only: ingress, egress, consensus, log and archives.

use std::time::Duration;

use taran::Client;
use taran_cluster_client::ClusterContext;
use taran_protocol::counter::SecureCounter;
use taran_protocol::option::ThreadingMode;

use crate::own_address::own_address;
use crate::process::{Directory, Process, taran};
use crate::{Host, Keys, await_condition, count};

const MEMBERS: usize = 3;
const MESSAGES: u64 = 200;

#[test]
fn cluster_elects_a_leader_and_answers_over_secured_channels() {
    let keys: Vec<Keys> = (20..)
        .take(MEMBERS + 1)
        .map(|number| Keys::new("cluster", number))
        .collect();
    for (index, own) in keys.iter().enumerate() {
        let others = keys.iter().enumerate().filter(|(other, _)| *other != index);
        let others: Vec<&Keys> = others.map(|(_, keys)| keys).collect();
        own.trust(&others);
    }
    let own = own_address();
    let endpoint =
        |member: usize, number: usize| format!("{own}:{}", 41_000 + member * 10 + number);
    let members: Vec<String> = (0..MEMBERS)
        .map(|member| {
            let endpoints: Vec<String> = (0..5).map(|number| endpoint(member, number)).collect();
            format!("{member},{}", endpoints.join(","))
        })
        .collect();
    let directories: Vec<Directory> = (0..MEMBERS).map(|_| Directory::new("member")).collect();
    let mut processes: Vec<Process> = (0..MEMBERS)
        .map(|member| {
            let path = |part: &str| directories[member].path().join(part).display().to_string();
            let options = [
                format!("taran.secure.keys.dir={}", keys[member].path.display()),
                "taran.secure.mode=all".to_owned(),
                "taran.dir.mode=0700".to_owned(),
                format!("aeron.dir={}", path("driver")),
                format!("aeron.archive.dir={}", path("archive")),
                format!("aeron.cluster.dir={}", path("cluster")),
                "aeron.threading.mode=SHARED".to_owned(),
                "aeron.archive.threading.mode=SHARED".to_owned(),
                "aeron.archive.segment.file.length=1m".to_owned(),
                "aeron.archive.low.storage.space.threshold=1m".to_owned(),
                format!(
                    "aeron.archive.control.channel=aeron:udp?endpoint={}",
                    endpoint(member, 4)
                ),
                format!("aeron.archive.replication.channel=aeron:udp?endpoint={own}:0"),
                format!("aeron.cluster.replication.channel=aeron:udp?endpoint={own}:0"),
                "aeron.cluster.log.channel=aeron:udp?term-length=256k".to_owned(),
                "aeron.cluster.ingress.channel=aeron:udp?term-length=64k".to_owned(),
                "aeron.cluster.leader.heartbeat.timeout=4s".to_owned(),
                format!("aeron.cluster.member.id={member}"),
                format!("aeron.cluster.members={}", members.join("|")),
            ];
            let mut command = taran(&["cluster", "--driver", "--archive", "--service", "echo"]);
            command.args(options.map(|option| format!("-D{option}")));
            Process::start(&mut command)
        })
        .collect();
    let host = Host::start(&keys[MEMBERS], ThreadingMode::Shared);
    let ingress: Vec<String> = (0..MEMBERS)
        .map(|member| format!("{member}={}", endpoint(member, 0)))
        .collect();
    let mut cluster = ClusterContext::new(ingress.join(","))
        .egress_channel(format!("aeron:udp?endpoint={own}:0"))
        .message_timeout(Duration::from_secs(60))
        .connect(&host.client)
        .unwrap_or_else(|error| {
            let ended = processes.iter_mut().any(Process::has_ended);
            panic!("{error}; a member has ended: {ended}")
        });
    let (mut sent, mut answered) = (0_u64, 0_u64);
    await_condition("all answers", || {
        if sent < MESSAGES && cluster.offer(&sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        let take = |message: &[u8], _: &_| {
            assert_eq!(message, answered.to_le_bytes());
            answered += 1;
        };
        cluster.poll(take).unwrap();
        answered == MESSAGES
    });
    cluster.close();
    for (member, directory) in directories.iter().enumerate() {
        let client = Client::builder()
            .aeron_dir(directory.path().join("driver"))
            .connect()
            .unwrap();
        let counters = client.counters();
        // Each member has links to the other two at least: consensus in both directions.
        let links = count(counters, SecureCounter::Links);
        assert!(links >= 4, "member {member}: {links} links");
        assert!(
            count(counters, SecureCounter::BytesOpened) > 0,
            "member {member}"
        );
        for refused in [
            SecureCounter::PlainRefused,
            SecureCounter::OutOfBounds,
            SecureCounter::FailedOpens,
        ] {
            assert_eq!(count(counters, refused), 0, "member {member}: {refused:?}");
        }
    }
    assert_eq!(host.count(SecureCounter::PlainRefused), 0);
    for process in &processes {
        process.signal("TERM");
    }
    for process in processes {
        let outcome = process.wait();
        assert_eq!(outcome.stderr, "", "{outcome:?}");
    }
}
