//! Driver and client in invoker mode on one thread. Launches its own driver.

use std::sync::{Arc, Mutex, PoisonError};

use taran::Client;
use taran_driver::{DriverContext, MediaDriver, ThreadingMode};

pub(crate) fn main() -> anyhow::Result<()> {
    let driver =
        MediaDriver::launch_embedded(DriverContext::new().threading_mode(ThreadingMode::Invoker))?;
    let directory = driver.aeron_dir().to_path_buf();
    let driver = Arc::new(Mutex::new(driver));
    let invoke_driver = move || {
        let mut driver = driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver.invoke()
    };

    // While the client waits for the driver, it invokes the driver.
    let client = Client::builder()
        .aeron_dir(directory)
        .invoker(true)
        .driver_invoker(invoke_driver.clone())
        .connect()?;
    let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    let publication = client.add_publication("aeron:ipc", 1001)?;

    // Otherwise the application invokes both, often: the driver times out a client without heartbeats.
    let (mut sent, mut received) = (0, 0);
    while received < 10 {
        invoke_driver();
        client.invoke();
        if sent < 10 && publication.offer(&[sent]).is_ok() {
            sent += 1;
        }
        received += subscription.poll(|_, _| (), 10)?;
    }
    println!("{received} messages on one thread");
    Ok(())
}
