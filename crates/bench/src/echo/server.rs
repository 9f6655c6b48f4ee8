// SPDX-License-Identifier: Apache-2.0
//! The server side: sends everything back.

use taran::{Action, OfferError};

use super::config::EchoConfig;
use crate::side::{RunError, Side};

const FRAGMENT_LIMIT: usize = 64;

/// Echoes until the side is stopped.
///
/// Fragments are sent back one by one; the client reassembles messages. A fragment that cannot be sent back yet stays
/// in the log and is delivered again by the next poll.
pub(super) fn run(config: &EchoConfig, side: &mut Side) -> Result<(), RunError> {
    match echo_until_stopped(config, side) {
        // The stop flag is the normal end of a server.
        Err(RunError::Interrupted) => Ok(()),
        other => other,
    }
}

fn echo_until_stopped(config: &EchoConfig, side: &mut Side) -> Result<(), RunError> {
    let mut publication =
        side.add_exclusive_publication(&config.reply_channel, config.reply_stream_id)?;
    let mut subscription = side.add_subscription(&config.channel, config.stream_id)?;
    loop {
        side.duty_cycle()?;
        let mut failure = None;
        subscription.controlled_poll(
            |fragment, header| match echo(&mut publication, fragment, header.flags()) {
                Ok(()) => Action::Continue,
                Err(error) if error.is_retryable() => Action::Abort,
                Err(error) => {
                    failure = Some(error);
                    Action::Abort
                }
            },
            FRAGMENT_LIMIT,
        )?;
        if let Some(error) = failure {
            return Err(error.into());
        }
    }
}

fn echo(
    publication: &mut taran::ExclusivePublication,
    fragment: &[u8],
    flags: u8,
) -> Result<(), OfferError> {
    let mut claim = publication.try_claim(fragment.len())?;
    claim.copy_from_slice(fragment);
    claim.set_flags(flags);
    claim.commit();
    Ok(())
}
