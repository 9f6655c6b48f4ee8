// SPDX-License-Identifier: Apache-2.0
//! Requests of a user, and what follows from their answers.

use std::fmt::Write as _;

use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{Call, Recording, RecordingSubscription, ReplaySession, RequestError};
use taran_sim::Violation;

use super::super::journal::Journal;
use super::{Media, SPIED_PORT, UserProcess, WantedReplay, WantedReplication};

/// A request without an answer yet.
pub(super) enum Task {
    Started(Call<i64>),
    Stopped(Call<bool>),
    Extend(u32, Call<Option<Recording>>),
    Truncate(i64, i64, Call<i64>),
    Purge(i64, Call<i64>),
    PurgeSegments(i64, Call<i64>),
    DescribeToPurgeSegments(i64, u32, Call<Option<Recording>>),
    Replay(WantedReplay, String, i32, Call<ReplaySession>),
    List(Vec<(i64, i64)>, Call<Vec<Recording>>),
    ListSubscriptions(Call<Vec<RecordingSubscription>>),
    Replicate(WantedReplication, Call<i64>),
    Done,
}

impl UserProcess {
    pub(super) fn poll_tasks(
        &mut self,
        now_ns: i64,
        journal: &mut Journal,
    ) -> Result<usize, Violation> {
        let mut work = 0;
        let mut at = 0;
        while at < self.tasks.len() {
            let task = std::mem::replace(&mut self.tasks[at], Task::Done);
            match self.advance(task, now_ns, journal)? {
                Task::Done => {
                    self.tasks.swap_remove(at);
                    work += 1;
                }
                task => {
                    self.tasks[at] = task;
                    at += 1;
                }
            }
        }
        Ok(work)
    }

    fn advance(
        &mut self,
        task: Task,
        now_ns: i64,
        journal: &mut Journal,
    ) -> Result<Task, Violation> {
        Ok(match task {
            Task::Started(mut call) => match call.poll() {
                None => Task::Started(call),
                Some(result) => checked(result, journal)?.map_or(Task::Done, |_| Task::Done),
            },
            Task::Stopped(mut call) => match call.poll() {
                None => Task::Stopped(call),
                Some(result) => checked(result, journal)?.map_or(Task::Done, |_| Task::Done),
            },
            Task::Extend(label, mut call) => match call.poll() {
                None => Task::Extend(label, call),
                Some(result) => {
                    if let Some(Some(recording)) = checked(result, journal)? {
                        self.extend_recording(label, &recording, journal)
                    } else {
                        Task::Done
                    }
                }
            },
            Task::Truncate(recording_id, position, mut call) => match call.poll() {
                None => Task::Truncate(recording_id, position, call),
                Some(result) => {
                    if checked(result, journal)?.is_some() {
                        journal.counts.truncations += 1;
                        journal.recording(recording_id).truncated_to = Some(position);
                    }
                    Task::Done
                }
            },
            Task::Purge(recording_id, mut call) => match call.poll() {
                None => Task::Purge(recording_id, call),
                Some(result) => {
                    if checked(result, journal)?.is_some() {
                        journal.counts.purges += 1;
                        journal.recording(recording_id).is_gone = true;
                    }
                    Task::Done
                }
            },
            Task::DescribeToPurgeSegments(recording_id, segments, mut call) => match call.poll() {
                None => Task::DescribeToPurgeSegments(recording_id, segments, call),
                Some(result) => match checked(result, journal)?.flatten() {
                    Some(recording) => self.purge_first_segments(&recording, segments, journal),
                    None => Task::Done,
                },
            },
            Task::PurgeSegments(recording_id, mut call) => match call.poll() {
                None => Task::PurgeSegments(recording_id, call),
                Some(result) => {
                    journal.counts.segment_purges += u64::from(checked(result, journal)?.is_some());
                    Task::Done
                }
            },
            Task::Replay(wanted, channel, stream_id, mut call) => match call.poll() {
                None => Task::Replay(wanted, channel, stream_id, call),
                Some(result) => {
                    match (checked(result, journal)?, wanted.must_reach) {
                        (Some(session), _) => {
                            self.subscribe(wanted, &channel, stream_id, session, now_ns);
                        }
                        (None, Some(_)) if !journal.recording(wanted.recording_id).may_be_gone => {
                            return Err(Violation(format!(
                                "the archive refused the replay {wanted:?}"
                            )));
                        }
                        (None, _) => {}
                    }
                    Task::Done
                }
            },
            Task::List(floors, mut call) => match call.poll() {
                None => Task::List(floors, call),
                Some(result) => {
                    if let Some(found) = checked(result, journal)? {
                        check_listing(&floors, &found, journal)?;
                        journal.last_listing = found;
                    }
                    Task::Done
                }
            },
            Task::Replicate(wanted, mut call) => match call.poll() {
                None => Task::Replicate(wanted, call),
                Some(result) => {
                    if let Some(id) = checked(result, journal)? {
                        journal.counts.replications += 1;
                        self.replications.push((id, wanted.source));
                    }
                    Task::Done
                }
            },
            Task::ListSubscriptions(mut call) => match call.poll() {
                None => Task::ListSubscriptions(call),
                Some(result) => {
                    let found = checked(result, journal)?;
                    if found.as_ref().is_some_and(Vec::is_empty) {
                        self.wants_all_stopped = false;
                    }
                    for subscription in found.unwrap_or_default() {
                        if let Some(connection) = self.connection() {
                            let call = connection
                                .try_stop_recording_subscription(subscription.subscription_id);
                            self.tasks.push(Task::Stopped(call));
                        }
                    }
                    Task::Done
                }
            },
            Task::Done => Task::Done,
        })
    }

    fn extend_recording(
        &mut self,
        label: u32,
        recording: &Recording,
        journal: &mut Journal,
    ) -> Task {
        let Some(stop) = recording.stop_position else {
            return Task::Done;
        };
        if self.track(label).is_some() || recording.mtu_length != 1_408 {
            return Task::Done;
        }
        let media = match recording.original_channel.as_str() {
            "aeron:ipc" => Media::Ipc,
            channel if channel.ends_with(&SPIED_PORT.to_string()) => Media::Spied,
            channel if channel.contains("control-mode=dynamic") => Media::Shared,
            _ => Media::Udp,
        };
        if self.addresses.is_local == (media == Media::Udp) {
            return Task::Done;
        }
        let term_length = i64::from(recording.term_buffer_length);
        let mut parameters = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            parameters,
            "|init-term-id={}|term-id={}|term-offset={}",
            recording.initial_term_id,
            recording
                .initial_term_id
                .wrapping_add((stop / term_length) as i32),
            stop % term_length
        );
        if !self.open(label, media, recording.stream_id, &parameters) {
            return Task::Done;
        }
        let (channel, location) = (recording.original_channel.clone(), location(media));
        let (id, stream_id) = (recording.recording_id, recording.stream_id);
        let Some(connection) = self.connection() else {
            return Task::Done;
        };
        journal.counts.extensions += 1;
        journal.recording(id).on_extension(stop);
        Task::Started(connection.extend_recording(id, &channel, stream_id, location, false))
    }

    fn purge_first_segments(
        &mut self,
        recording: &Recording,
        segments: u32,
        journal: &mut Journal,
    ) -> Task {
        let term_length = i64::from(recording.term_buffer_length);
        let first_base = recording.start_position / term_length * term_length;
        let position = first_base + i64::from(segments) * i64::from(recording.segment_file_length);
        let id = recording.recording_id;
        let Some(connection) = self.connection() else {
            return Task::Done;
        };
        let call = connection.purge_segments(id, position);
        let known = journal.recording(id);
        known.start_max = known.start_max.max(position);
        Task::PurgeSegments(id, call)
    }
}

pub(super) fn location(media: Media) -> SourceLocation {
    match media {
        Media::Udp => SourceLocation::REMOTE,
        Media::Ipc | Media::Spied | Media::Shared => SourceLocation::LOCAL,
    }
}

/// Returns the answer; `None` if the archive refused, was lost, or did not answer in time. Other errors are violations.
fn checked<T>(
    result: Result<T, RequestError>,
    journal: &mut Journal,
) -> Result<Option<T>, Violation> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(RequestError::Rejected(error)) => {
            journal.last_refusal = Some((error.code, error.message));
            Ok(None)
        }
        Err(RequestError::UnexpectedResponse { request, code }) => Err(Violation(format!(
            "the answer to the request to {request} is {code:?}"
        ))),
        Err(_) => Ok(None),
    }
}

fn check_listing(
    floors: &[(i64, i64)],
    found: &[Recording],
    journal: &mut Journal,
) -> Result<(), Violation> {
    journal.counts.listed += 1;
    for (id, floor) in floors {
        let known = journal.recording(*id);
        if known.may_be_gone || known.is_unavailable {
            continue;
        }
        let floor = known.floor.min(*floor);
        let Some(recording) = found.iter().find(|recording| recording.recording_id == *id) else {
            return Err(Violation(format!("recording {id} is not listed")));
        };
        if let Some(stop) = recording.stop_position
            && stop < floor
        {
            return Err(Violation(format!(
                "recording {id} is listed with the stop position {stop}, and was acknowledged to {floor}"
            )));
        }
    }
    Ok(())
}
