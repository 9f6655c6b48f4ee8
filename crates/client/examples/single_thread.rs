// SPDX-License-Identifier: Apache-2.0
//! Driver, client and an agent of the program on one thread. Launches its own driver.

use taran::{Client, Pending, Publication, Subscription};
use taran_driver::{
    Agent, AgentEnd, AgentPlacement, DriverContext, MediaDriver, Now, ThreadingMode,
};

/// Sends ten messages to itself, then ends.
struct Counting {
    client: Client,
    publication: Publication,
    subscription: Subscription,
    sent: u8,
    received: usize,
}

impl Agent for Counting {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        let mut work = self.client.invoke();
        // An error that `?` returns ends this agent; the driver's `termination` tells it.
        if self.sent < 10 {
            match self.publication.offer(&[self.sent]) {
                Ok(_) => {
                    self.sent += 1;
                    work += 1;
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let polled = self.subscription.poll(|_, _| (), 10)?;
        self.received += polled;
        if self.received == 10 {
            println!("{} messages on one thread", self.received);
            return Err(AgentEnd::Finished);
        }
        Ok(work + polled)
    }

    fn role_name(&self) -> &str {
        "counting"
    }
}

/// Invokes driver and client until the driver has answered. `ClientBuilder::driver_invoker` would do so in each call that
/// waits, but has to share the driver.
fn await_driver<T>(
    driver: &mut MediaDriver,
    client: &Client,
    mut pending: Pending<T>,
) -> Result<T, taran::CommandError> {
    loop {
        driver.invoke();
        client.invoke();
        if let Some(result) = pending.poll() {
            return result;
        }
    }
}

pub(crate) fn main() -> anyhow::Result<()> {
    let context = DriverContext::new().threading_mode(ThreadingMode::Invoker);
    let mut driver = MediaDriver::launch_embedded(context)?;
    let client = Client::builder()
        .aeron_dir(driver.aeron_dir())
        .invoker(true)
        .connect()?;
    let subscription = client.async_add_subscription("aeron:ipc", 1001)?;
    let subscription = await_driver(&mut driver, &client, subscription)?;
    let publication = client.async_add_publication("aeron:ipc", 1001)?;
    let publication = await_driver(&mut driver, &client, publication)?;

    // From here on the driver runs the agent, which runs the client.
    let counting = Counting {
        client,
        publication,
        subscription,
        sent: 0,
        received: 0,
    };
    let counting = driver.add_agent(counting, AgentPlacement::DriverThread)?;
    while driver.is_agent_running(counting) {
        driver.invoke();
    }
    if let Some(reason) = driver.termination() {
        anyhow::bail!("{reason}");
    }
    driver.close()?;
    Ok(())
}
