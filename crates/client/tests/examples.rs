// SPDX-License-Identifier: Apache-2.0
//! Runs each example with its own driver.

#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::duplicate_mod)] // each example includes what it uses

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{ClientBuilder, ConnectionState, Lost, ReconnectingClient};
use taran_driver::{DriverContext, MediaDriver, ThreadingMode};

macro_rules! examples {
    ($($path:literal $name:ident;)*) => {
        $(
            #[path = $path]
            #[allow(dead_code, reason = "its main uses the driver of the environment")]
            mod $name;
        )*

        $(
            #[test]
            fn $name() {
                let driver = driver();
                $name::run(builder(&driver)).unwrap();
            }
        )*

        #[test]
        fn error_of_each_example_is_a_text_for_the_user() {
            $(
                // What a failing main prints.
                let error = format!("{:?}", $name::run(builder_without_driver()).unwrap_err());
                assert!(error.starts_with("no media driver runs in /taran-no-such-"), "{error}");
            )*
        }
    };
}

examples! {
    "../examples/asynchronous.rs" asynchronous;
    "../examples/counters.rs" counters;
    "../examples/publication_destinations.rs" publication_destinations;
    "../examples/closing.rs" closing;
    "../examples/exclusive_publication.rs" exclusive_publication;
    "../examples/images.rs" images;
    "../examples/publishing.rs" publishing;
    "../examples/raw_poll.rs" raw_poll;
    "../examples/subscription_destinations.rs" subscription_destinations;
    "../examples/subscribing.rs" subscribing;
}

fn driver() -> MediaDriver {
    MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(64 * 1024)).unwrap()
}

fn builder(driver: &MediaDriver) -> ClientBuilder {
    ClientBuilder::with_environment::<&str, &str>([]).aeron_dir(driver.aeron_dir())
}

fn builder_without_driver() -> ClientBuilder {
    ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir("/taran-no-such-directory")
        .driver_timeout(Duration::from_millis(1))
}

#[path = "../examples/tokio_streams.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod tokio_streams;

#[test]
fn tokio_streams() {
    let driver = driver();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime
        .unwrap()
        .block_on(tokio_streams::run(builder(&driver)))
        .unwrap();
}

#[path = "../examples/channels.rs"]
mod channels;

#[test]
fn channels() {
    channels::main().unwrap();
}

#[path = "../examples/single_thread.rs"]
mod single_thread;

#[test]
fn single_thread() {
    single_thread::main().unwrap();
}

#[path = "../examples/inspect_driver.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod inspect_driver;

#[test]
fn inspect_driver() {
    let driver = driver();
    inspect_driver::run(&builder(&driver)).unwrap();
}

#[path = "../examples/ping.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod ping;

#[path = "../examples/pong.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod pong;

#[test]
fn ping_pong() {
    const ROUNDS: usize = 10;
    let driver = driver();
    let (there, back) = (("aeron:ipc", 1001), ("aeron:ipc", 1002));
    let to_pong = builder(&driver);
    let pong = thread::spawn(move || pong::run(to_pong, there, back).unwrap());
    let times = ping::run(builder(&driver), there, back, ROUNDS).unwrap();
    assert_eq!(times.len(), ROUNDS);
    // As many again before the measured ones.
    assert_eq!(pong.join().unwrap(), 2 * ROUNDS as u64);
}

#[path = "../examples/responses.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod responses;

#[test]
fn responses() {
    let driver = driver();
    // A loopback address specific to this process, and a port outside the ephemeral range.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let control = format!("127.{}.{low}.1:9459", 64 | (high & 0x3f));
    responses::run(builder(&driver), &control).unwrap();
}

#[path = "../examples/reconnecting.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod reconnecting;

/// The driver runs only while this test invokes it. Afterwards it is like a killed one, and the next driver starts.
#[test]
fn reconnecting() {
    const DRIVERS: u64 = 3;
    // Too many for the client to exchange without a running driver, so it must use each driver.
    const MESSAGES: u64 = 10_000;
    let launch = |context: DriverContext| {
        let context = context.threading_mode(ThreadingMode::Invoker);
        MediaDriver::launch_embedded(context).unwrap()
    };
    let mut driver = launch(DriverContext::new());
    let directory = driver.aeron_dir().to_path_buf();
    let (received, losses) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let client = {
        let (directory, received) = (directory.clone(), Arc::clone(&received));
        let losses = Arc::clone(&losses);
        let client = ReconnectingClient::new(move || {
            let builder = ClientBuilder::with_environment::<&str, &str>([]).aeron_dir(&directory);
            builder
                .driver_timeout(Duration::from_secs(1))
                .on_error(|_| ())
        });
        let on_message = move |number| received.store(number + 1, Ordering::Relaxed);
        let on_state = move |state: &ConnectionState| {
            if let ConnectionState::Reconnecting { lost, .. } = state
                && matches!(lost, Some(Lost::DriverTimeout { .. }))
            {
                losses.fetch_add(1, Ordering::Relaxed);
            }
        };
        thread::spawn(move || reconnecting::run(client, DRIVERS * MESSAGES, on_message, on_state))
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    for count in 1..=DRIVERS {
        while received.load(Ordering::Relaxed) < count * MESSAGES && !client.is_finished() {
            driver.invoke();
            assert!(Instant::now() < deadline, "the client makes no progress");
        }
        if count < DRIVERS {
            // This driver is not invoked again, and does not shut down.
            std::mem::forget(driver);
            let context = DriverContext::new().aeron_dir(&directory);
            driver = launch(
                context
                    .delete_dir_on_start(true)
                    .delete_dir_on_shutdown(true),
            );
        }
    }
    while !client.is_finished() {
        driver.invoke();
        assert!(Instant::now() < deadline, "the client does not end");
    }
    client.join().unwrap().unwrap();
    assert!(losses.load(Ordering::Relaxed) >= DRIVERS - 1);
}
