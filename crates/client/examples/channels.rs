// SPDX-License-Identifier: Apache-2.0
//! Channels: building with validation, parsing, and modification. Needs no driver.

use std::time::Duration;

use taran::{ChannelUri, ChannelUriBuilder, ControlMode, Param};

pub(crate) fn main() -> Result<(), taran::Error> {
    // One method per parameter; values are validated before they reach a driver.
    let multicast = ChannelUriBuilder::udp()
        .endpoint("224.20.30.39:40456")
        .interface("192.168.1.0/24")
        .ttl(4)
        .min_flow_control(Some(3), Some(Duration::from_secs(2)))
        .linger(Duration::from_millis(500))
        .alias("prices")
        .build()?;
    println!("{multicast}");
    if let Err(error) = ChannelUriBuilder::udp().endpoint("localhost").build() {
        println!("rejected: {error}");
    }

    // A stream that continues at a position.
    let resumed = ChannelUriBuilder::udp()
        .endpoint("localhost:40123")
        .initial_position(1 << 20, 7, 64 * 1024)
        .build()?;
    println!("{resumed}");

    // Parsing.
    let channel = ChannelUri::parse("aeron:udp?endpoint=localhost:0|tags=1,2|my-key=x")?;
    println!(
        "{:?} with tags {:?}",
        channel.get(Param::Endpoint),
        channel.tags()
    );
    for (key, value) in channel.parameters() {
        println!("  {key} = {value}");
    }
    for key in channel.unknown_keys() {
        println!("  {key} is unknown to drivers");
    }

    // Modification: the order of the parameters and unknown parameters are preserved.
    println!("{}", channel.with_endpoint_port("127.0.0.1:40123")?);
    println!(
        "{}",
        channel.with_session_id(-7)?.with_alias_if_absent("mine")?
    );
    let manual = ChannelUriBuilder::from_uri(&channel)
        .control_mode(ControlMode::Manual)
        .clear(Param::Endpoint)
        .build()?;
    println!(
        "{manual}, with the destination {}",
        manual.destination("localhost:40124")?
    );
    Ok(())
}
