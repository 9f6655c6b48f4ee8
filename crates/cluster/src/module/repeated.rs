// SPDX-License-Identifier: Apache-2.0
//! A command to the driver that is repeated while the driver asks for another attempt.
//!
//! **Input**: the time, and a function that sends the command. **Output**: [`Repeated::poll`] sends the command and returns its result,
//! once. A refused command whose reason passes, such as a socket that is still being closed, is sent again after [`RETRY_PAUSE`]. A
//! command that the driver may have executed is not repeated: its failure is final ([`CommandError::is_repeatable`]).

use taran::{CommandError, Pending};

use crate::consensus::Nanos;

/// Time between the refusal of a command and its next attempt.
const RETRY_PAUSE: Nanos = 5_000_000;

/// A command with a result of type `T`.
#[derive(Debug)]
pub(super) struct Repeated<T> {
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    /// It is sent from this time on.
    Due(Nanos),
    Sent(Pending<T>),
    /// The result was returned.
    Done,
}

impl<T> Repeated<T> {
    /// Creates a command that is sent at its first poll.
    pub(super) fn new() -> Self {
        Self {
            state: State::Due(Nanos::MIN),
        }
    }

    /// Sends the command with `send` if it is due, or takes the answer of the driver. Returns the result once; `None` before and
    /// afterwards.
    pub(super) fn poll(
        &mut self,
        now: Nanos,
        send: impl FnOnce() -> Result<Pending<T>, CommandError>,
    ) -> Option<Result<T, CommandError>> {
        let result = match &mut self.state {
            State::Done => return None,
            State::Due(due) if now < *due => return None,
            State::Due(_) => match send() {
                Ok(pending) => {
                    self.state = State::Sent(pending);
                    return None;
                }
                Err(error) => Err(error),
            },
            State::Sent(pending) => pending.poll()?,
        };
        if let Err(error) = &result
            && error.is_repeatable()
        {
            self.state = State::Due(now.saturating_add(RETRY_PAUSE));
            return None;
        }
        self.state = State::Done;
        Some(result)
    }

    /// Returns true if the driver may have the command: its answer is awaited, or its result was returned.
    pub(super) fn is_sent(&self) -> bool {
        !matches!(self.state, State::Due(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: CommandError = CommandError::DriverBufferFull { length: 8 };

    /// Returns how often a command is sent that the client cannot send, when it is polled at these times.
    fn attempts(command: &mut Repeated<()>, times: impl IntoIterator<Item = Nanos>) -> usize {
        let mut attempts = 0;
        for now in times {
            let result = command.poll(now, || {
                attempts += 1;
                Err(FULL)
            });
            assert_eq!(result, None);
        }
        attempts
    }

    #[test]
    fn command_is_sent_at_once_and_repeated_after_a_pause() {
        let mut command = Repeated::new();
        let start = 7_000;
        assert_eq!(attempts(&mut command, [start]), 1);
        assert!(!command.is_sent());
        let next = start + RETRY_PAUSE;
        assert_eq!(attempts(&mut command, [start + 1, next - 1]), 0);
        assert_eq!(attempts(&mut command, [next, next]), 1);
        assert_eq!(attempts(&mut command, [next + RETRY_PAUSE]), 1);
    }

    #[test]
    fn command_with_a_final_failure_returns_it_once_and_is_not_sent_again() {
        let mut command = Repeated::<()>::new();
        for error in [CommandError::Closed, CommandError::Withdrawn] {
            let mut again = Repeated::<()>::new();
            let failure = again.poll(0, || Err(error.clone()));
            assert_eq!(failure, Some(Err(error)));
        }
        let failure = command.poll(0, || Err(CommandError::ResponseOverwritten));
        assert_eq!(failure, Some(Err(CommandError::ResponseOverwritten)));
        assert!(command.is_sent());
        let later = command.poll(Nanos::MAX, || panic!("it is sent again"));
        assert_eq!(later, None);
    }
}
