//! Log files that are made before the commands run that need them: a client that adds many publications waits for them
//! together.

use taran_core::agent::Agent;
use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::response::Response;

use crate::bench::Bench;

const IPC: &str = "aeron:ipc";

fn send_add(bench: &Bench, client_id: i64, channel: &str, stream_id: i32) {
    bench.send(&Command::AddPublication {
        client_id,
        correlation_id: bench.id(),
        stream_id,
        channel,
    });
}

/// How many publications were announced since the last look.
fn announced(bench: &mut Bench) -> usize {
    let messages = bench.messages();
    let ready = messages
        .iter()
        .filter(|message| matches!(message.get(), Response::PublicationReady { .. }));
    ready.count()
}

/// A client that waits for a name, with publications behind that.
fn waiting(bench: &mut Bench, count: i32) -> i64 {
    let client_id = bench.client();
    send_add(bench, client_id, "aeron:udp?endpoint=server:40123", 1_000);
    for stream_id in 0..count {
        send_add(bench, client_id, IPC, stream_id);
    }
    bench.settle();
    client_id
}

fn mapped(bench: &Bench) -> i64 {
    bench.system(SystemCounter::BytesCurrentlyMapped)
}

#[test]
fn a_client_that_adds_many_does_not_wait_for_each() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    for stream_id in 0..40 {
        send_add(&bench, client_id, IPC, stream_id);
    }
    let (mut ready, mut cycles) = (0, 0);
    while ready < 40 {
        let now = bench.now();
        bench.parts.conductor.do_work(now);
        ready += announced(&mut bench);
        cycles += 1;
        assert!(cycles < 1_000, "{ready} are ready");
    }
    // A file is there in the next cycle: one after the other would take as many cycles as there are publications.
    assert!(cycles <= 40 / 4 + 5, "{cycles}");
}

#[test]
fn files_are_made_while_their_commands_wait() {
    let mut bench = Bench::new();
    waiting(&mut bench, 20);
    assert_eq!(bench.log_files().len(), 20);
    assert_eq!(announced(&mut bench), 0);
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    bench.hosts.answer("server", &answer);
    bench.settle();
    assert_eq!(announced(&mut bench), 21);
    assert_eq!(bench.log_files().len(), 21);
}

#[test]
fn a_client_that_leaves_before_its_turn_leaves_no_file() {
    let mut bench = Bench::new();
    let before = mapped(&bench);
    let client_id = waiting(&mut bench, 20);
    assert!(mapped(&bench) > before);
    bench.send(&Command::ClientClose {
        client_id,
        correlation_id: bench.id(),
    });
    bench.settle();
    assert!(bench.log_files().is_empty());
    assert_eq!(mapped(&bench), before);
}

#[test]
fn commands_that_share_a_publication_have_one_file_made() {
    let mut bench = Bench::new();
    let client_id = waiting(&mut bench, 1);
    for _ in 0..20 {
        send_add(&bench, client_id, IPC, 0);
    }
    bench.settle();
    assert_eq!(bench.log_files().len(), 1);
    let answer = Ok(vec!["10.0.0.7".parse().unwrap()]);
    bench.hosts.answer("server", &answer);
    bench.settle();
    assert_eq!(announced(&mut bench), 22);
    assert_eq!(bench.log_files().len(), 2);
}

#[test]
fn a_file_that_its_command_does_not_need_goes_again() {
    let mut bench = Bench::new();
    let client_id = waiting(&mut bench, 1);
    let before = bench.log_files().len();
    // Another client is first.
    let other = bench.client();
    bench.add_publication(other, IPC, 0).unwrap();
    assert_eq!(bench.log_files().len(), before + 1);
    bench
        .hosts
        .answer("server", &Err("no such name".to_owned()));
    bench.settle();
    assert_eq!(announced(&mut bench), 1);
    assert_eq!(bench.log_files().len(), 1, "client {client_id} shares it");
}

/// The smallest term that a channel asks for is told by the channel, not by what was foreseen.
#[test]
fn what_is_foreseen_is_what_is_needed() {
    let mut bench = Bench::new();
    let client_id = waiting(&mut bench, 0);
    send_add(&bench, client_id, "aeron:ipc?term-length=128k", 5);
    bench.settle();
    bench
        .hosts
        .answer("server", &Err("no such name".to_owned()));
    bench.settle();
    let messages = bench.messages();
    let log = messages.iter().find_map(|message| match message.get() {
        Response::PublicationReady { log_name, .. } => Some(log_name.to_owned()),
        _ => None,
    });
    assert_eq!(bench.log(&log.unwrap()).term_length(), 128 * 1024);
}
