// SPDX-License-Identifier: Apache-2.0
//! A destination of the log's subscription.
//!
//! **Input**: [`LogDestination::add`] names it. **Output**: [`LogDestination::poll`] requests it from the driver and takes the answer.
//! The endpoint may still be in use by a subscription that was closed a moment ago; the driver then asks for another attempt
//! ([`Repeated`]).
//!
//! Archive and services subscribe to the same endpoint by its tags. The endpoint keeps its destinations, and their ports, until the
//! last of these subscriptions is closed; [`LogDestination::remove`] frees the port of this one at once.

use taran::{CommandError, Subscription};

use super::repeated::Repeated;
use crate::consensus::Nanos;

/// A destination that is requested, or added.
pub(super) struct LogDestination {
    channel: String,
    request: Repeated<()>,
    is_added: bool,
}

impl LogDestination {
    /// Requests a destination with this endpoint.
    pub(super) fn add(
        subscription: &Subscription,
        endpoint: &str,
        now: Nanos,
    ) -> Result<Self, CommandError> {
        let mut destination = Self {
            channel: format!("aeron:udp?endpoint={endpoint}"),
            request: Repeated::new(),
            is_added: false,
        };
        destination.poll(subscription, now)?;
        Ok(destination)
    }

    /// Requests the destination if it is missing, or takes the answer of the driver. An error is final.
    pub(super) fn poll(
        &mut self,
        subscription: &Subscription,
        now: Nanos,
    ) -> Result<(), CommandError> {
        let channel = &self.channel;
        let send = || subscription.async_add_destination(channel);
        match self.request.poll(now, send) {
            Some(Ok(())) => self.is_added = true,
            Some(Err(error)) => return Err(error),
            None => {}
        }
        Ok(())
    }

    /// Returns true once the driver has added it.
    pub(super) fn is_added(&self) -> bool {
        self.is_added
    }

    /// Removes the destination. The driver's answer is not awaited.
    pub(super) fn remove(self, subscription: &Subscription) -> Result<(), CommandError> {
        if !self.request.is_sent() {
            return Ok(());
        }
        subscription
            .async_remove_destination(&self.channel)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use taran::{Client, Pending};
    use taran_driver::{DriverContext, MediaDriver};
    use taran_protocol::option::ThreadingMode;

    use super::*;

    /// Driver and client in this thread, so that the driver takes several commands in one duty cycle.
    struct Fixture {
        driver: Arc<Mutex<MediaDriver>>,
        client: Client,
        /// Each cycle takes a millisecond.
        now: Nanos,
    }

    impl Fixture {
        fn start() -> Self {
            let context = DriverContext::new()
                .threading_mode(ThreadingMode::Invoker)
                .term_buffer_length(64 * 1024);
            let driver = MediaDriver::launch_embedded(context).unwrap();
            let directory = driver.aeron_dir().to_path_buf();
            let driver = Arc::new(Mutex::new(driver));
            let invoked = Arc::clone(&driver);
            let client = Client::builder()
                .aeron_dir(directory)
                .invoker(true)
                .driver_invoker(move || invoked.lock().unwrap().invoke())
                .connect()
                .unwrap();
            Self {
                driver,
                client,
                now: 0,
            }
        }

        fn work(&mut self) {
            self.now += 1_000_000;
            self.client.invoke();
            self.driver.lock().unwrap().invoke();
            self.client.invoke();
        }

        fn complete<T>(&mut self, mut pending: Pending<T>) -> Result<T, CommandError> {
            loop {
                if let Some(result) = pending.poll() {
                    return result;
                }
                self.work();
            }
        }

        fn subscription(&mut self) -> Subscription {
            self.subscribe("aeron:udp?control-mode=manual")
        }

        fn subscribe(&mut self, channel: &str) -> Subscription {
            let pending = self.client.async_add_subscription(channel, 100).unwrap();
            self.complete(pending).unwrap()
        }

        fn await_added(&mut self, destination: &mut LogDestination, subscription: &Subscription) {
            while !destination.is_added() {
                self.work();
                destination.poll(subscription, self.now).unwrap();
            }
        }
    }

    /// Returns an endpoint with a port that was free a moment ago.
    fn endpoint() -> String {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    }

    #[test]
    fn destination_that_is_removed_frees_its_port_although_another_subscription_keeps_the_endpoint()
    {
        let endpoint = endpoint();
        let mut fixture = Fixture::start();
        let log = fixture.subscribe("aeron:udp?tags=1,2|control-mode=manual");
        let mut destination = LogDestination::add(&log, &endpoint, fixture.now).unwrap();
        fixture.await_added(&mut destination, &log);
        let _of_a_service = fixture.subscribe("aeron:udp?tags=1,2|control-mode=manual");

        destination.remove(&log).unwrap();
        drop(log);
        let next = fixture.subscription();
        let mut added = LogDestination::add(&next, &endpoint, fixture.now).unwrap();
        fixture.await_added(&mut added, &next);
    }

    #[test]
    fn destination_whose_endpoint_is_still_being_closed_is_added_in_the_end() {
        let endpoint = endpoint();
        let mut fixture = Fixture::start();
        let [before, between, after] = [(); 3].map(|()| fixture.subscription());
        let mut first = LogDestination::add(&before, &endpoint, fixture.now).unwrap();
        fixture.await_added(&mut first, &before);

        // The driver refuses an attempt in the duty cycle in which the subscription is closed.
        drop(before);
        let attempt = between.async_add_destination(&first.channel).unwrap();
        let refused = fixture.complete(attempt).unwrap_err();
        assert!(refused.is_retryable(), "{refused}");

        let mut added = LogDestination::add(&between, &endpoint, fixture.now).unwrap();
        fixture.await_added(&mut added, &between);
        drop(between);
        let mut again = LogDestination::add(&after, &endpoint, fixture.now).unwrap();
        let mut attempts = 1;
        let mut was_requested = true;
        while !again.is_added() {
            fixture.work();
            again.poll(&after, fixture.now).unwrap();
            let is_requested = again.request.is_sent();
            attempts += usize::from(is_requested && !was_requested);
            was_requested = is_requested;
        }
        // The first attempt was refused, and the others came after a pause each.
        assert!((2..=4).contains(&attempts), "{attempts}");
    }

    #[test]
    fn destination_that_the_driver_refuses_for_good_is_an_error() {
        let mut fixture = Fixture::start();
        let subscription = fixture.subscription();
        let mut refused =
            LogDestination::add(&subscription, "127.0.0.1:99999", fixture.now).unwrap();
        let error = loop {
            fixture.work();
            match refused.poll(&subscription, fixture.now) {
                Ok(()) if refused.is_added() => panic!("the destination was added"),
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert!(!error.is_retryable(), "{error}");
    }
}
