// SPDX-License-Identifier: Apache-2.0
use super::*;

fn file() -> Source {
    Source::File("a.properties".into())
}

#[test]
fn stronger_source_wins_in_any_order() {
    let mut options = OptionSet::driver();
    options
        .apply(&Source::CommandLine, [("aeron.mtu.length", "4k")])
        .unwrap();
    options
        .apply(
            &Source::Environment,
            [("AERON_MTU_LENGTH", "8k"), ("AERON_MAX_RESEND", "7")],
        )
        .unwrap();
    options
        .apply(
            &file(),
            [("aeron.mtu.length", "2k"), ("aeron.max.resend", "8")],
        )
        .unwrap();
    assert_eq!((options.mtu_length(), options.max_resend()), (4096, 8));
    assert_eq!(options.source(OptionId::MtuLength), &Source::CommandLine);
    options
        .set(OptionId::MtuLength, "1408", &Source::Code)
        .unwrap();
    assert_eq!(options.mtu_length(), 1408);
}

#[test]
fn empty_value_overrides_weaker_sources() {
    let mut options = OptionSet::driver();
    options
        .apply(&Source::Environment, [("AERON_MTU_LENGTH", "8k")])
        .unwrap();
    options
        .apply(&Source::CommandLine, [("aeron.mtu.length", "")])
        .unwrap();
    assert_eq!(options.mtu_length(), 1408);
    assert_eq!(options.source(OptionId::MtuLength), &Source::Default);
    options
        .apply(&Source::Environment, [("AERON_MTU_LENGTH", "8k")])
        .unwrap();
    assert_eq!(options.mtu_length(), 1408);
}

#[test]
fn profile_is_weaker_than_every_other_source() {
    let mut options = OptionSet::driver();
    assert_eq!(options.sender_idle_strategy(), Some("adaptive"));
    assert_eq!(
        options.source(OptionId::SenderIdleStrategy),
        &Source::Profile(Profile::Balanced)
    );
    options
        .apply(
            &Source::Environment,
            [("AERON_SENDER_IDLE_STRATEGY", "yield")],
        )
        .unwrap();
    options
        .apply(&Source::CommandLine, [("aeron.receiver.idle.strategy", "")])
        .unwrap();
    options
        .apply(&file(), [("taran.profile", "low-latency")])
        .unwrap();
    assert_eq!(options.sender_idle_strategy(), Some("yield"));
    assert_eq!(options.receiver_idle_strategy(), Some("noop"));
    assert!(!options.term_buffer_sparse_file());
    options
        .apply(&Source::CommandLine, [("taran.profile", "low-footprint")])
        .unwrap();
    assert_eq!(options.threading_mode_name(), "SHARED");
    assert_eq!(options.receiver_idle_strategy(), Some("backoff"));
    assert!(options.term_buffer_sparse_file());
}

#[test]
fn profile_options_are_valid() {
    for profile in Profile::ALL {
        for (id, text) in profile.options() {
            assert!(read(id.spec(), text).is_ok(), "{profile} {id:?}");
        }
        let mut options = OptionSet::driver();
        options
            .set(OptionId::Profile, profile.as_str(), &Source::Code)
            .unwrap();
        assert_eq!(options.profile(), profile);
    }
}

#[test]
fn invalid_value_error_says_what_to_do() {
    let mut options = OptionSet::driver();
    let errors = options
        .apply(
            &Source::Environment,
            [
                ("AERON_MTU_LENGTH", "1400"),
                ("AERON_TIMER_INTERVAL", "1x"),
                ("AERON_EVENT_LOG", "admin,nothing"),
                ("AERON_MAX_RESEND", "7"),
            ],
        )
        .unwrap_err();
    let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "aeron.mtu.length=1400 (environment variable AERON_MTU_LENGTH) is out of range: needs a multiple of 32 \
             in 64..65504; change it, or remove it for the default 1408",
            "aeron.timer.interval=1x (environment variable AERON_TIMER_INTERVAL) is not understood: needs a \
             duration such as 100ms: digits with ns, us, ms or s; change it, or remove it for the default 1s",
            "aeron.event.log=admin,nothing (environment variable AERON_EVENT_LOG) is not understood: needs events \
             separated by commas: names such as CMD_IN_ADD_PUBLICATION, numbers, all or admin; change it, or remove it \
             to leave it unset",
        ]
    );
    assert_eq!(options.max_resend(), 7);
}

#[test]
fn debug_timeout_replaces_liveness_timeouts() {
    let mut options = OptionSet::driver();
    assert_eq!(options.use_debug_timeout(), []);
    options
        .apply(&Source::Environment, [("AERON_DEBUG_TIMEOUT", "600s")])
        .unwrap();
    let changed = options.use_debug_timeout();
    assert_eq!(changed.len(), 3);
    assert_eq!(changed[1].0, OptionId::ClientLivenessTimeout);
    assert_eq!(changed[1].1, "10s");
    assert_eq!(options.driver_timeout_ms(), 600_000);
    assert_eq!(options.client_liveness_timeout_ns(), 600_000_000_000);
    assert_eq!(options.publication_unblock_timeout_ns(), 900_000_000_000);
    let mut client = OptionSet::client();
    client
        .set(OptionId::DebugTimeout, "600s", &Source::Code)
        .unwrap();
    assert_eq!(client.use_debug_timeout().len(), 1);
    assert_eq!(client.driver_timeout_ms(), 600_000);
}

#[test]
fn official_class_names_map_or_are_rejected_with_reason() {
    let mut options = OptionSet::driver();
    for (name, text) in [
        (
            "aeron.event.log.reader.classname",
            "io.aeron.agent.EventLogReaderAgent",
        ),
        (
            "aeron.SendChannelEndpoint.supplier",
            "io.aeron.driver.DefaultSendChannelEndpointSupplier",
        ),
        ("aeron.secure.random.algorithm", "SHA1PRNG"),
        ("aeron.fallback.logger", "no_op"),
        (
            "aeron.sender.idle.strategy",
            "org.agrona.concurrent.BusySpinIdleStrategy",
        ),
        (
            "aeron.receiver.idle.strategy",
            "aeron_idle_strategy_yielding",
        ),
        (
            "aeron.driver.termination.validator",
            "io.aeron.driver.DefaultAllowTerminationValidator",
        ),
    ] {
        assert!(
            options.apply(&Source::Code, [(name, text)]).is_ok(),
            "{name}={text}"
        );
    }
    for (name, text, reason) in [
        (
            "aeron.event.log.reader.classname",
            "my.Reader",
            "Java classes",
        ),
        (
            "aeron.SendChannelEndpoint.supplier",
            "my.Supplier",
            "Java classes",
        ),
        (
            "AERON_DRIVER_DYNAMIC_LIBRARIES",
            "libmine.so",
            "no other libraries",
        ),
        (
            "AERON_AGENT_ON_START_FUNCTION",
            "my_function",
            "no other libraries",
        ),
        (
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
            "my_bindings",
            "DriverContext",
        ),
        (
            "aeron.sender.idle.strategy",
            "my.IdleStrategy",
            "an idle strategy",
        ),
    ] {
        let error = options
            .apply(&Source::Code, [(name, text)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(text) && error.contains(reason) && error.contains("remove it"),
            "{error}"
        );
    }
}

#[test]
fn fixed_option_accepts_only_default() {
    let mut options = OptionSet::driver();
    for spec in OptionId::ALL
        .iter()
        .filter(|spec| spec.status != Status::Supported)
    {
        assert!(
            options.set(spec.id, spec.default, &Source::Code).is_ok(),
            "{}",
            spec.property
        );
    }
    for (name, text) in [
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "aeron_max_multicast_flow_control_strategy_supplier",
        ),
        ("AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT", "10000000000"),
        ("AERON_EVENT_LOG_DISABLE", ""),
        ("AERON_NAK_UNICAST_DELAY", "0"),
        ("AERON_PUBLICATION_LINGER_TIMEOUT", "0"),
    ] {
        assert!(
            options.apply(&Source::Environment, [(name, text)]).is_ok(),
            "{name}={text}"
        );
    }
}

#[test]
fn names_of_other_components_are_ignored() {
    let mut options = OptionSet::driver();
    let unknown = options
        .apply(
            &Source::Environment,
            [
                ("PATH", "/bin"),
                ("aeron.mtu.length", "bad"),
                ("AERON_CLIENT_IDLE_SLEEP_DURATION", "bad"),
                ("AERON_ARCHIVE_DIR", "x"),
                ("AERON_TERM_BUFFER_LENGHT", "64k"),
            ],
        )
        .unwrap();
    assert_eq!(unknown.len(), 1);
    assert_eq!(
        unknown[0].to_string(),
        "unknown option AERON_TERM_BUFFER_LENGHT (environment), did you mean AERON_TERM_BUFFER_LENGTH?"
    );
    let mut client = OptionSet::client();
    client
        .apply(
            &Source::Environment,
            [("AERON_MTU_LENGTH", "bad"), ("AERON_DIR", "/x")],
        )
        .unwrap();
    assert_eq!(client.dir(), Some("/x"));
}

#[test]
fn explain_lists_options_of_scope() {
    let options = OptionSet::client();
    let all: Vec<_> = options.explain().collect();
    assert!(all.iter().any(|e| e.option.id == OptionId::ClientName));
    assert!(!all.iter().any(|e| e.option.id == OptionId::MtuLength));
    let timeout = all
        .iter()
        .find(|e| e.option.id == OptionId::DriverTimeout)
        .unwrap();
    assert_eq!(
        (timeout.value.as_str(), timeout.source),
        ("10000", &Source::Default)
    );
}
