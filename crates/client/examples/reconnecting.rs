//! Reconnecting: when the driver is lost, the application connects again and adds its publication and subscription
//! again.
//!
//! Needs a running driver: `cargo run --release -- driver`. Kill and restart it while this runs.

use std::error::Error;
use std::thread;

use taran::{
    Client, ClientBuilder, CommandError, ConnectError, Lost, OfferError, PollError, Publication,
    Subscription,
};

const CHANNEL: &str = "aeron:ipc?term-length=64k";
const STREAM: i32 = 1001;

fn main() -> Result<(), Box<dyn Error>> {
    let on_message = |number| {
        if number % 1_000_000 == 0 {
            println!("message {number}");
        }
    };
    let on_lost = |lost| println!("{lost}");
    run(Client::builder, 100_000_000, on_message, on_lost)
}

/// Sends the message numbers below `messages` and receives each of them once, across restarts of the driver. `builder`
/// creates the builder of each client; `on_lost` is called with the reason of each loss.
pub(crate) fn run(
    builder: impl Fn() -> ClientBuilder,
    messages: u64,
    mut on_message: impl FnMut(u64),
    mut on_lost: impl FnMut(Lost),
) -> Result<(), Box<dyn Error>> {
    // The driver's logs are lost with it: the application sends unreceived messages again.
    let mut received = 0;
    while received < messages {
        let outcome = Session::open(&builder).and_then(|mut session| {
            while received < messages {
                session.exchange(&mut received, &mut on_message)?;
            }
            Ok(())
        });
        match outcome {
            Err(Failure::Lost(lost)) => on_lost(lost),
            // Connecting has waited for a driver already.
            Ok(()) | Err(Failure::NoDriver) => {}
            Err(Failure::Other(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Everything that is lost with a driver. A lost client and its resources cannot be reused; dropping the session closes
/// them.
struct Session {
    publication: Publication,
    subscription: Subscription,
    next: Option<u64>,
    _client: Client,
}

impl Session {
    fn open(builder: &impl Fn() -> ClientBuilder) -> Result<Session, Failure> {
        let client = builder().connect()?;
        Ok(Session {
            subscription: client.add_subscription(CHANNEL, STREAM)?,
            publication: client.add_publication(CHANNEL, STREAM)?,
            next: None,
            _client: client,
        })
    }

    /// Offers one message and polls.
    fn exchange(
        &mut self,
        received: &mut u64,
        mut on_message: impl FnMut(u64),
    ) -> Result<(), Failure> {
        let next = *self.next.get_or_insert(*received);
        match self.publication.offer(&next.to_le_bytes()) {
            Ok(_) => self.next = Some(next + 1),
            Err(error) if error.is_retryable() => thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
        self.subscription.poll(
            |message, _| {
                assert_eq!(message, received.to_le_bytes(), "messages arrive in order");
                on_message(*received);
                *received += 1;
            },
            10,
        )?;
        Ok(())
    }
}

/// Errors, by what to do about them.
enum Failure {
    /// The client is lost; connect again.
    Lost(Lost),
    /// There is no driver; connect again.
    NoDriver,
    /// Connecting again would not help.
    Other(Box<dyn Error>),
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        match error {
            ConnectError::NoDriver { .. }
            | ConnectError::NotReady { .. }
            | ConnectError::DriverStopped { .. }
            | ConnectError::DriverDied { .. } => Failure::NoDriver,
            other => Failure::Other(other.into()),
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Failure {
        match error {
            CommandError::DriverLost(lost) => Failure::Lost(lost),
            // A driver that does not answer may have died.
            CommandError::Timeout { .. } => Failure::NoDriver,
            other => Failure::Other(other.into()),
        }
    }
}

impl From<OfferError> for Failure {
    fn from(error: OfferError) -> Failure {
        match error {
            OfferError::DriverLost(lost) => Failure::Lost(lost),
            other => Failure::Other(other.into()),
        }
    }
}

impl From<PollError> for Failure {
    fn from(error: PollError) -> Failure {
        match error {
            PollError::DriverLost(lost) => Failure::Lost(lost),
            other => Failure::Other(other.into()),
        }
    }
}
