// SPDX-License-Identifier: Apache-2.0
//! The test vectors of docs/spec/uri-and-configuration.md §1.14, with the codes of the C driver. Where this driver deliberately
//! differs, its own code is listed with the reason.

use taran_protocol::error_code::ErrorCode;

use crate::fixture::DriverFixture;

const OK: i32 = 0;
const INVALID_CHANNEL: i32 = ErrorCode::InvalidChannel.code();
const UNKNOWN_HOST: i32 = ErrorCode::UnknownHost.code();
const GENERIC: i32 = ErrorCode::GenericError.code();

const U: &str = "udp?endpoint=localhost:40001";
const M: &str = "udp?endpoint=224.0.1.1:40001|interface=localhost";

fn channel(vector: &str) -> String {
    let expanded = if let Some(rest) = vector.strip_prefix("U|") {
        format!("{U}|{rest}")
    } else if let Some(rest) = vector.strip_prefix("M|") {
        format!("{M}|{rest}")
    } else {
        match vector {
            "U" => U.to_owned(),
            "M" => M.to_owned(),
            other => other.to_owned(),
        }
    };
    if expanded.starts_with("aeron-spy:") {
        expanded
    } else {
        format!("aeron:{expanded}")
    }
}

/// Adds channels one after the other to one driver and returns the code of the last response.
fn code(vectors: &[&str], add: fn(&mut DriverFixture, i64, &str) -> i32) -> i32 {
    let mut driver = DriverFixture::with(&[("aeron.term.buffer.length", "16m")]);
    let client = driver.client();
    let mut last = OK;
    for vector in vectors {
        last = add(&mut driver, client, &channel(vector));
    }
    last
}

fn publish(driver: &mut DriverFixture, client: i64, channel: &str) -> i32 {
    answered(driver, |driver| {
        driver.add_publication(client, channel, 10).map(|_| ())
    })
}

fn publish_exclusive(driver: &mut DriverFixture, client: i64, channel: &str) -> i32 {
    answered(driver, |driver| {
        driver.add_exclusive(client, channel, 10).map(|_| ())
    })
}

fn subscribe(driver: &mut DriverFixture, client: i64, channel: &str) -> i32 {
    answered(driver, |driver| {
        driver.add_subscription(client, channel, 10).map(|_| ())
    })
}

fn answered(
    driver: &mut DriverFixture,
    add: impl Fn(&mut DriverFixture) -> Result<(), crate::fixture::CommandError>,
) -> i32 {
    driver.hosts.fail_all();
    match add(driver) {
        Ok(()) => OK,
        Err(refused) => {
            assert!(!refused.text.is_empty());
            refused.code.code()
        }
    }
}

fn check(table: &[(i32, &[&[&str]])], add: fn(&mut DriverFixture, i64, &str) -> i32) {
    for (expected, rows) in table {
        for vectors in *rows {
            assert_eq!(code(vectors, add), *expected, "{vectors:?}");
        }
    }
}

#[test]
fn publications() {
    check(
        &[
            (
                OK,
                &[
                    &["U|channel-snd-ts-offset=0"],
                    &[
                        "U|channel-snd-ts-offset=reserved",
                        "U|channel-snd-ts-offset=-8",
                    ],
                    &["U|foo=bar"],
                    &["udp?endpoint=[::1]:40002"],
                    &["U|mtu=2K|term-length=1M"],
                    &["U|linger=5S"],
                    &["U|session-id=-1"],
                    &["U|alias=a=b"],
                    &["U|init-term-id=1|term-id=3|term-offset=64"],
                    &["U|tags=31,32", "udp?tags=31"],
                    &["U|tags=31,32", "udp?tags=31|session-id=tag:32"],
                    &["U|ats=false"],
                    &["ipc?term-length=64k"],
                    &["ipc?"],
                    &["ipc"],
                    &["U|mtu=65504|term-length=64k"],
                    &["ipc?mtu=65504|term-length=64k"],
                    &["U|session-id=0x10"],
                    &["U|stream-id=11"],
                    &["U|so-sndbuf=3g"],
                    &["U|tags=31,32", "U|tags=31,32"],
                    &["U|term-length=64kb"],
                    &["U|fc=bogus"],
                    &["U|fc=max"],
                    &["M"],
                    &["M|fc=min,t:5s,g:/2"],
                    &["M|fc=tagged,g:123,rrwm:8"],
                    &["udp?control-mode=manual|fc=max,rrwm:8"],
                    &["udp?control-mode=dynamic|control=localhost:40003"],
                    &["udp?control-mode=dynamic|control=localhost:0"],
                    &["udp?control-mode=manual"],
                    &["udp?endpoint=224.0.1.1:40001|interface={lo}"],
                    &["U|ssc=true"],
                    &[
                        "udp?control-mode=response|control=localhost:40020|response-correlation-id=prototype",
                    ],
                ],
            ),
            (
                INVALID_CHANNEL,
                &[
                    &["udp"],
                    &["udp?"],
                    &["udp?=x"],
                    &["udp?endpoint"],
                    &["udp?endpoint="],
                    &["tcp?endpoint=localhost:40001"],
                    &["udp?control-mode=dynamic"],
                    &["udp?tags=abc|endpoint=localhost:40005"],
                    &["ipcx"],
                    &["ipc|foo"],
                    &["UDP?endpoint=localhost:40001"],
                    &["udp?Endpoint=localhost:40001"],
                    // A trailing separator, an unknown control-mode and a spy are refused, as recommended.
                    &["U|"],
                    &["udp?control-mode=bogus|control=localhost:40004"],
                    &["aeron-spy:aeron:udp?endpoint=localhost:40001"],
                ],
            ),
            (UNKNOWN_HOST, &[&["udp?endpoint=nosuch.invalid:40001"]]),
            (
                GENERIC,
                &[
                    &["U|sparse=maybe"],
                    &["U|ats=true"],
                    &["udp?endpoint=localhost"],
                    &["udp?endpoint=localhost:99999"],
                    &["udp?endpoint=localhost:abc"],
                    // An unbracketed IPv6 address, and minutes, which the C driver takes for milliseconds.
                    &["udp?endpoint=::1:41521"],
                    &["U|linger=5m"],
                    &["udp?endpoint=224.0.1.2:40001"],
                    &["M|ttl=abc"],
                    &["M|ttl=256"],
                    &["M|fc=bogus"],
                    &["M|fc=pref"],
                    &["M|fc=max,t:5s"],
                    &["M|fc=min,x:1"],
                    &["M|fc=min,rrwm:0"],
                    &["udp?endpoint=224.0.1.1:40001|interface={nosuch}"],
                    &["udp?endpoint=224.0.1.1:40001|interface=10.99.0.0/16"],
                    &["U|response-correlation-id=123456"],
                    &["udp?control-mode=response|control=localhost:40020"],
                    &[
                        "udp?control-mode=response|control=localhost:40020|response-correlation-id=5",
                    ],
                    &["U|pub-wnd=1k"],
                    &["U|pub-wnd=16m"],
                    &["U|max-resend=0"],
                    &["U|max-resend=257"],
                    &["U|session-id=abc"],
                    &["U|session-id=4294967295"],
                    &["U|init-term-id=1"],
                    &["U|init-term-id=5|term-id=3|term-offset=0"],
                    &["U|init-term-id=1|term-id=3|term-offset=33"],
                    &["U|init-term-id=1|term-id=3|term-offset=33554432"],
                    &["udp?tags=99"],
                    &["U|tags=41,abc"],
                    &["U", "U|so-sndbuf=1k"],
                    &["U|channel-snd-ts-offset=abc"],
                    &["U", "U|channel-snd-ts-offset=0"],
                    &["U|channel-snd-ts-offset=8", "U|channel-snd-ts-offset=0"],
                    &["U|channel-snd-ts-offset=0|channel-rcv-ts-offset=4"],
                    &["udp?endpoint=localhost:0"],
                    &["udp?control=localhost:40003"],
                    &["U|term-length=100k"],
                    &["U|term-length=32k"],
                    &["U|term-length=2g"],
                    &["U|term-length=-64k"],
                    &["U|mtu=31"],
                    &["U|mtu=1400"],
                    &["U|linger=10x"],
                    &["U|linger=10sx"],
                    &["U|linger=-1"],
                    &["U|linger=1h"],
                    &["U|so-sndbuf=1k|mtu=1408"],
                    &["U|untethered-window-limit-timeout=abc"],
                    &["U|term-length=64k", "U|term-length=128k"],
                    &["U|term-length=64k", "U|mtu=2048"],
                    &["U|term-length=64k", "U|session-id=7"],
                    &["U|term-length=64k", "U|ssc=true"],
                    &["U|session-id=tag:77"],
                    &["U|tags=31,32", "udp?tags=31|session-id=tag:32|mtu=2k"],
                    &["ipc?tags=71,72", "ipc?session-id=tag:72"],
                ],
            ),
        ],
        publish,
    );
}

#[test]
fn exclusive_publications_do_not_share_session_ids() {
    check(
        &[(
            GENERIC,
            &[
                &["U|session-id=55", "U|session-id=55"],
                &["ipc?session-id=55", "ipc?session-id=55"],
            ],
        )],
        publish_exclusive,
    );
}

#[test]
fn subscriptions() {
    check(
        &[
            (
                OK,
                &[
                    &["udp?endpoint=localhost:0"],
                    &["udp?control=localhost:40112|endpoint=localhost:40113|control-mode=dynamic"],
                    &["udp?control=localhost:40112|control-mode=dynamic"],
                    &["U|cc=cubic"],
                    &["ipc?cc=bogus"],
                    &["U|media-rcv-ts-offset=0"],
                    &["U|channel-rcv-ts-offset=reserved|media-rcv-ts-offset=0"],
                    &["U|channel-rcv-ts-offset=0", "U|channel-rcv-ts-offset=0"],
                    &["U|stream-id=44"],
                    &["U|group=maybe"],
                    &["U|rcv-wnd=100"],
                    &["U|rcv-wnd=4m|so-rcvbuf=4m"],
                    &["U|interface={lo}:41507"],
                    &["U|gtag=0x10"],
                    &["U|so-rcvbuf=3g"],
                    &["U|session-id=0x5"],
                    &["U|init-term-id=1"],
                    &["U|tether=false"],
                    &["M"],
                    &["udp?control-mode=manual"],
                    &["udp?endpoint=224.0.1.1:40001"],
                    &["udp?endpoint=224.0.1.1:40001|interface={lo}"],
                    &["U|tags=5", "udp?tags=5"],
                    &["aeron-spy:aeron:udp?endpoint=localhost:40001"],
                    &["aeron-spy:aeron:udp?tags=5"],
                    &["udp?endpoint=localhost:40113|control=localhost:40112"],
                    &["udp?control-mode=response|control=localhost:40133"],
                ],
            ),
            (
                INVALID_CHANNEL,
                &[
                    // An unknown tag, as recommended.
                    &["udp?tags=59"],
                    &["aeron-spy:aeron:ipc"],
                ],
            ),
            (
                GENERIC,
                &[
                    &[
                        "U|channel-rcv-ts-offset=reserved",
                        "U|channel-rcv-ts-offset=8",
                    ],
                    &["U|media-rcv-ts-offset=8", "U"],
                    &["U|nak-delay=abc"],
                    &["U|reliable=false", "U"],
                    &["U", "U|so-rcvbuf=256k"],
                    &["U|gtag=abc"],
                    &["udp?endpoint=224.0.1.2:40001"],
                    &["M|interface={nope}"],
                    &["M|interface=1.2.3.4"],
                    &["M|interface=127.0.0.1/33"],
                    &["U|rcv-wnd=xyz"],
                    &["U|rcv-wnd=63"],
                    // Rejected here when it is added; in C, each of its images fails.
                    &["U|cc=bogus"],
                    &["U|tether=no"],
                    &["udp?control=localhost:0"],
                    &["udp?control=localhost:0|endpoint=localhost:40001"],
                    &["U|rcv-wnd=4m"],
                    &["U|session-id=tag:2"],
                    &["U|session-id=abc"],
                    &["U|untethered-resting-timeout=abc"],
                    &["ipc?session-id=abc"],
                ],
            ),
        ],
        subscribe,
    );
}

#[test]
fn misspelt_key_is_accepted_and_recorded() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    for channel in [
        "aeron:udp?endpoint=localhost:40123|term_lenght=64k",
        "aeron:udp?endpoint=localhost:40123|customer=7",
    ] {
        driver.add_subscription(client, channel, 10).unwrap();
    }
    let errors = driver.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = "unknown key term_lenght has no effect, did you mean term-length?";
    assert!(errors[0].0.contains(text), "{errors:?}");
}
