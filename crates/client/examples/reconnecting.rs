//! A client that outlives its driver: when that is lost, it connects anew and makes its publication and subscription anew.
//!
//! Needs a running driver: `cargo run --release -- driver`. Kill it meanwhile and start it again.

use std::error::Error;
use std::thread;

use taran::{
    AddError, Client, ConnectError, Context, Lost, OfferError, PollError, Publication, Subscription,
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
    run(Context::new, 100_000_000, on_message, on_lost)
}

/// Sends messages with the numbers below `messages`, and receives each of them once, whatever becomes of the driver.
/// `context` makes the options of each client, `on_lost` hears how each was lost.
pub(crate) fn run(
    context: impl Fn() -> Context,
    messages: u64,
    mut on_message: impl FnMut(u64),
    mut on_lost: impl FnMut(Lost),
) -> Result<(), Box<dyn Error>> {
    // What a driver kept is gone with it: what was sent and not received is for us to send again.
    let mut received = 0;
    while received < messages {
        let end = Session::open(&context).and_then(|mut session| {
            while received < messages {
                session.turn(&mut received, &mut on_message)?;
            }
            Ok(())
        });
        match end {
            Err(Trouble::Lost(lost)) => on_lost(lost),
            // Connecting has waited for a driver already.
            Ok(()) | Err(Trouble::NoDriver) => {}
            Err(Trouble::Other(error)) => return Err(error),
        }
    }
    Ok(())
}

/// What ends with a driver. A lost client stays lost, and so does all that it has made: dropping the session closes it.
struct Session {
    publication: Publication,
    subscription: Subscription,
    next: Option<u64>,
    _client: Client,
}

impl Session {
    fn open(context: &impl Fn() -> Context) -> Result<Session, Trouble> {
        let client = context().connect()?;
        Ok(Session {
            subscription: client.add_subscription(CHANNEL, STREAM)?,
            publication: client.add_publication(CHANNEL, STREAM)?,
            next: None,
            _client: client,
        })
    }

    /// Offers one message and takes what has come.
    fn turn(&mut self, received: &mut u64, mut on_message: impl FnMut(u64)) -> Result<(), Trouble> {
        let next = *self.next.get_or_insert(*received);
        match self.publication.offer(&next.to_le_bytes()) {
            Ok(_) => self.next = Some(next + 1),
            Err(error) if error.is_retryable() => thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
        self.subscription.poll(
            |message, _| {
                assert_eq!(message, received.to_le_bytes(), "the next one");
                on_message(*received);
                *received += 1;
            },
            10,
        )?;
        Ok(())
    }
}

/// What can go wrong: some of it is a reason to begin anew.
enum Trouble {
    /// The client is lost.
    Lost(Lost),
    /// There is no driver, or not yet.
    NoDriver,
    /// Connecting anew would not help.
    Other(Box<dyn Error>),
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Trouble {
        match error {
            ConnectError::NoDriver { .. }
            | ConnectError::NotReady { .. }
            | ConnectError::DriverStopped { .. }
            | ConnectError::DriverDied { .. } => Trouble::NoDriver,
            other => Trouble::Other(other.into()),
        }
    }
}

impl From<AddError> for Trouble {
    fn from(error: AddError) -> Trouble {
        match error {
            AddError::DriverLost(lost) => Trouble::Lost(lost),
            // It was asked and did not answer: that is how a driver ends, too.
            AddError::Timeout { .. } => Trouble::NoDriver,
            other => Trouble::Other(other.into()),
        }
    }
}

impl From<OfferError> for Trouble {
    fn from(error: OfferError) -> Trouble {
        match error {
            OfferError::DriverLost(lost) => Trouble::Lost(lost),
            other => Trouble::Other(other.into()),
        }
    }
}

impl From<PollError> for Trouble {
    fn from(error: PollError) -> Trouble {
        match error {
            PollError::DriverLost(lost) => Trouble::Lost(lost),
            other => Trouble::Other(other.into()),
        }
    }
}
