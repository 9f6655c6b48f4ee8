// SPDX-License-Identifier: Apache-2.0
//! Starts a driver and lets it run until standard input ends: `cargo run -p taran-driver --example embedded -- DIR`.

use std::io::Read;

use taran_driver::{DriverContext, MediaDriver};

fn main() -> anyhow::Result<()> {
    let mut context = DriverContext::from_environment()?;
    if let Some(directory) = std::env::args().nth(1) {
        context = context.aeron_dir(directory);
    }
    let driver = MediaDriver::launch(context)?;
    println!("{}", driver.aeron_dir().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    driver.close()?;
    Ok(())
}
