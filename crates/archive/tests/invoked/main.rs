// SPDX-License-Identifier: Apache-2.0
//! An archive whose duty cycles the test decides.

#![forbid(unsafe_code)]

mod filesystems;
mod fixture;
#[path = "../../../cli/tests/shared/own_namespaces.rs"]
mod own_namespaces;
mod starts;

use taran::ChannelUriBuilder;
use taran_archive_client::ReplayParams;
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};

use fixture::{CHANNEL, Invoked};

const STREAM: i32 = 1;
const MESSAGE: [u8; 100] = [7; 100];
/// Length of its frame.
const FRAME: i64 = 160;

/// A recording is active for its clients as soon as its entry in the catalog says so, before the driver has added the counter
/// with its position.
#[test]
fn replay_from_the_end_of_a_recording_that_is_about_to_be_extended_follows_it() {
    let mut archive = Invoked::new("about-to-be-extended", &[]);
    let (mut publication, recording_id) = archive.record(STREAM);
    archive.run_until(|_| publication.offer(&MESSAGE).ok());
    let end = publication.position();
    let recorded = archive.recorded_position(recording_id);
    archive.run_until(|_| (recorded.get() == end).then_some(()));
    let call = archive.connection().stop_recording(CHANNEL, STREAM);
    archive.wait(call);
    archive.wait_for(RecordingSignal::STOP);
    let call = archive.connection().list_recording(recording_id);
    let stopped = archive.wait(call).expect("there is a recording");
    assert_eq!(stopped.stop_position, Some(end));
    drop(publication);

    let call = archive.connection().extend_recording(
        recording_id,
        CHANNEL,
        STREAM,
        SourceLocation::LOCAL,
        false,
    );
    archive.wait(call);
    let continued = ChannelUriBuilder::ipc()
        .initial_position(end, stopped.initial_term_id, 64 * 1024)
        .build()
        .expect("the position is valid");
    let mut publication = archive.publication(continued.as_str(), STREAM);
    // The driver does nothing meanwhile.
    loop {
        let mut call = archive.connection().list_recording(recording_id);
        let found = archive.cycle_until(Invoked::invoke_archive, |_| call.poll());
        let found = found.expect("it is accepted").expect("it is there");
        if found.stop_position.is_none() {
            break;
        }
    }
    let mut call = archive.connection().start_replay(
        recording_id,
        CHANNEL,
        STREAM + 1,
        &ReplayParams::new().position(end),
    );
    for _ in 0..100 {
        archive.invoke_archive();
    }
    assert!(call.poll().is_none(), "the replay waits for the recording");

    let session = archive.wait(call);
    let channel = session.subscription_channel(CHANNEL).expect("it is valid");
    let pending = archive.client.async_add_subscription(&channel, STREAM + 1);
    let mut pending = pending.expect("the command is sent");
    let mut replayed = archive
        .run_until(|_| pending.poll())
        .expect("the driver agrees");
    archive.run_until(|_| publication.offer(&MESSAGE).ok());
    let position = archive.run_until(|_| {
        let mut position = None;
        let polled = replayed.poll(|_, header| position = Some(header.position()), 10);
        polled.expect("the client lives");
        position
    });
    assert_eq!(position, end + FRAME);
}

#[test]
fn replay_of_a_recording_without_messages_follows_it() {
    let mut archive = Invoked::new("without-messages", &[]);
    let (mut publication, recording_id) = archive.record(STREAM);
    let mut replayed = archive.replay(recording_id, STREAM + 1, &ReplayParams::new());
    archive.run_until(|_| publication.offer(&MESSAGE).ok());
    archive.run_until(|_| {
        let polled = replayed.poll(|message, _| assert_eq!(message, MESSAGE), 10);
        (polled.expect("the client lives") > 0).then_some(())
    });
}
