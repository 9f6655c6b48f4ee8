// SPDX-License-Identifier: Apache-2.0
//! Invoker mode of driver and client, idle strategies, and inspection of a driver.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taran::idle::Yield;
use taran::{Client, ClientBuilder, ConnectError, counter_type};
use taran_driver::{
    Agent, AgentEnd, AgentPlacement, AgentThread, DriverContext, MediaDriver, Now, ThreadingMode,
};

use crate::{await_true, connect, driver};

#[test]
fn waiting_client_invokes_driver() {
    let context = || {
        DriverContext::new()
            .ipc_term_buffer_length(64 * 1024)
            .threading_mode(ThreadingMode::Invoker)
    };
    for invoked in [true, false] {
        let driver = MediaDriver::launch_embedded(context()).unwrap();
        let directory = driver.aeron_dir().to_path_buf();
        let driver = Arc::new(Mutex::new(driver));
        let invoked_driver = Arc::clone(&driver);
        let client = ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(directory)
            .invoker(invoked)
            .driver_invoker(move || invoked_driver.lock().unwrap().invoke())
            .connect()
            .unwrap();
        let mut subscription = client.add_subscription("aeron:ipc", 1).unwrap();
        let publication = client.add_publication("aeron:ipc", 1).unwrap();
        await_true("a message", || {
            driver.lock().unwrap().invoke();
            client.invoke();
            let _ = publication.offer(b"there");
            subscription.poll(|_, _| (), 10).unwrap() != 0
        });
        publication.async_close().unwrap().wait().unwrap();
    }
}

/// An agent with a client, which waits for an answer of the driver while it closes.
struct Departing {
    client: Client,
    answered: Arc<AtomicBool>,
}

impl Agent for Departing {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        Ok(0)
    }

    fn role_name(&self) -> &str {
        "departing"
    }

    fn on_close(&mut self) {
        let added = self.client.add_publication("aeron:ipc", 1);
        self.answered.store(added.is_ok(), Ordering::Release);
    }
}

#[test]
fn client_of_closing_agent_is_answered_by_the_invoked_driver() {
    let context = DriverContext::new()
        .ipc_term_buffer_length(64 * 1024)
        .threading_mode(ThreadingMode::Invoker);
    let mut driver = MediaDriver::launch_embedded(context).unwrap();
    let answered = Arc::<AtomicBool>::default();
    let agent = Departing {
        client: ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(driver.aeron_dir())
            .connect()
            .unwrap(),
        answered: Arc::clone(&answered),
    };
    let thread = AgentPlacement::OwnThread(AgentThread::new(Yield));
    driver.add_agent(agent, thread).unwrap();
    driver.close().unwrap();
    assert!(answered.load(Ordering::Acquire));
}

#[test]
fn conductor_thread_uses_custom_idle_strategy() {
    let driver = driver();
    let client = connect(&driver, |builder| builder.idle_strategy(Yield));
    let publication = client.add_publication("aeron:ipc", 1).unwrap();
    assert!(!publication.is_closed());
}

#[test]
fn driver_view_reads_driver_without_connecting() {
    let driver = driver();
    let builder =
        || ClientBuilder::with_environment::<&str, &str>([]).aeron_dir(driver.aeron_dir());
    let view = builder().inspect_driver().unwrap();
    assert!(view.is_active() && view.heartbeat_age().is_some());
    assert_eq!(view.pid(), i64::from(std::process::id()));
    assert_eq!(view.aeron_dir(), driver.aeron_dir());
    assert_eq!(view.file_page_size(), 4096);
    assert!(view.start_timestamp_ms() > 0 && !view.client_liveness_timeout().is_zero());
    let first = view.next_correlation_id();
    assert!(view.next_correlation_id() > first);

    let client = connect(&driver, |builder| builder.client_name("seen"));
    let publication = client.add_publication("aeron:ipc", 1).unwrap();
    let counters = view.counters();
    let heartbeat = counters
        .find_by_type_and_registration(counter_type::CLIENT_HEARTBEAT, client.client_id())
        .unwrap();
    await_true("the name", || {
        counters
            .label(heartbeat)
            .is_some_and(|label| label.as_str().contains("name=seen"))
    });
    assert_eq!((client.name(), client.is_closed()), ("seen", false));
    drop(publication);

    // The default termination validator rejects all tokens.
    view.request_termination(b"please").unwrap();
    assert!(view.request_termination(&[0; 1 << 20]).is_err());
    let mut errors = 0;
    view.for_each_error(0, |_| errors += 1);
    assert_eq!(errors, 0);
    assert!(client.add_publication("aeron:ipc", 1).is_ok());

    let directory = driver.aeron_dir().to_path_buf();
    drop((client, driver));
    let stopped = ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir(directory)
        .driver_timeout(Duration::from_secs(1))
        .inspect_driver();
    assert!(matches!(stopped, Err(ConnectError::NoDriver { .. })));
    assert!(!view.is_active() && view.heartbeat_age().is_none());
}
