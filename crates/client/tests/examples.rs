//! Every example does what it says, with a driver of its own.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Context, Lost};
use taran_driver::{DriverContext, MediaDriver};
use taran_protocol::option::ThreadingMode;

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
                $name::run(context(&driver)).unwrap();
            }
        )*
    };
}

examples! {
    "../examples/asynchronous.rs" asynchronous;
    "../examples/counters.rs" counters;
    "../examples/destinations.rs" destinations;
    "../examples/ends.rs" ends;
    "../examples/exclusive.rs" exclusive;
    "../examples/images.rs" images;
    "../examples/publishing.rs" publishing;
    "../examples/raw_files.rs" raw_files;
    "../examples/sources.rs" sources;
    "../examples/subscribing.rs" subscribing;
}

fn driver() -> MediaDriver {
    MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(64 * 1024)).unwrap()
}

fn context(driver: &MediaDriver) -> Context {
    Context::with_environment::<&str, &str>([]).aeron_dir(driver.aeron_dir())
}

#[path = "../examples/channels.rs"]
mod channels;

#[test]
fn channels_need_no_driver() {
    channels::main().unwrap();
}

#[path = "../examples/one_thread.rs"]
mod one_thread;

#[test]
fn one_thread_is_enough() {
    one_thread::main().unwrap();
}

#[path = "../examples/inspecting.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod inspecting;

#[test]
fn a_driver_can_be_inspected() {
    let driver = driver();
    inspecting::run(&context(&driver)).unwrap();
}

#[path = "../examples/responses.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod responses;

#[test]
fn requests_are_answered() {
    let driver = driver();
    // A loopback address that is nobody else's, and none of the ports that the system gives to others.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let control = format!("127.{}.{low}.1:9459", 64 | (high & 0x3f));
    responses::run(context(&driver), &control).unwrap();
}

#[path = "../examples/reconnecting.rs"]
#[allow(dead_code, reason = "its main uses the driver of the environment")]
mod reconnecting;

/// Each driver works as long as somebody turns it. Then it is as dead as one that was killed, and the next one begins.
#[test]
fn a_client_outlives_its_drivers() {
    const LIVES: u64 = 3;
    // Many more than the client can exchange on its own when a driver has set it going: it has to meet each of them.
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
        let context = move || {
            let context = Context::with_environment::<&str, &str>([]).aeron_dir(&directory);
            context
                .driver_timeout(Duration::from_secs(1))
                .on_error(|_| ())
        };
        let on_message = move |number| received.store(number + 1, Ordering::Relaxed);
        let on_lost = move |lost| {
            if matches!(lost, Lost::DriverTimeout { .. }) {
                losses.fetch_add(1, Ordering::Relaxed);
            }
        };
        thread::spawn(move || {
            let run = reconnecting::run(context, LIVES * MESSAGES, on_message, on_lost);
            run.map_err(|error| error.to_string())
        })
    };
    let patience = Instant::now() + Duration::from_secs(120);
    for life in 1..=LIVES {
        while received.load(Ordering::Relaxed) < life * MESSAGES && !client.is_finished() {
            driver.invoke();
            assert!(Instant::now() < patience, "the client does not go on");
        }
        if life < LIVES {
            // Nobody turns it any more, and it says no good-bye.
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
        assert!(Instant::now() < patience, "the client does not end");
    }
    client.join().unwrap().unwrap();
    assert!(losses.load(Ordering::Relaxed) >= LIVES - 1);
}
