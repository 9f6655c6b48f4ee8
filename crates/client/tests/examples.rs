//! Every example does what it says, with a driver of its own.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use taran::Context;
use taran_driver::{DriverContext, MediaDriver};

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
    // A port that was free a moment ago.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let control = socket.local_addr().unwrap().to_string();
    drop(socket);
    responses::run(context(&driver), &control).unwrap();
}
