// SPDX-License-Identifier: Apache-2.0
//! Every command and its responses, in order (docs/spec/shared-memory.md §9.4).

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;

use crate::fixture::{DriverFixture, Message, error_response};

const IPC: &str = "aeron:ipc";
const UDP: &str = "aeron:udp?endpoint=localhost:40123";

/// The kinds of messages, by name.
fn kinds(messages: &[Message]) -> Vec<&'static str> {
    messages
        .iter()
        .map(|message| kind(&message.get()))
        .collect()
}

fn kind(response: &Response<'_>) -> &'static str {
    match response {
        Response::Error { .. } => "error",
        Response::AvailableImage { .. } => "available",
        Response::PublicationReady { .. } => "publication",
        Response::OperationSuccess { .. } => "success",
        Response::UnavailableImage { .. } => "unavailable",
        Response::ExclusivePublicationReady { .. } => "exclusive",
        Response::SubscriptionReady { .. } => "subscription",
        Response::CounterReady { .. } => "counter",
        Response::UnavailableCounter { .. } => "no-counter",
        Response::ClientTimeout { .. } => "timeout",
        Response::StaticCounter { .. } => "static",
        Response::PublicationError { .. } => "publication-error",
        Response::NextAvailableSessionId { .. } => "session",
    }
}

#[test]
fn first_command_of_client_announces_heartbeat_counter() {
    for channel in [IPC, UDP] {
        let mut driver = DriverFixture::new();
        let client_id = driver.client();
        let correlation_id = driver.id();
        let answers = driver.ask(&Command::AddPublication {
            client_id,
            correlation_id,
            stream_id: 10,
            channel,
        });
        assert_eq!(kinds(&answers), ["counter", "publication"], "{channel}");
        let Response::CounterReady {
            correlation_id: announced,
            counter_id,
        } = answers[0].get()
        else {
            panic!()
        };
        assert_eq!(announced, client_id);
        assert_eq!(driver.value(counter_id), driver.now().epoch_millis);
        let again = driver.id();
        let answers = driver.ask(&Command::AddSubscription {
            client_id,
            correlation_id: again,
            stream_id: 11,
            channel,
        });
        assert_eq!(kinds(&answers), ["subscription"], "{channel}");
    }
}

#[test]
fn add_publication_with_bad_channel_creates_no_client() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let refused = driver.add_publication(client, "aeron:udp", 10).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidChannel);
    assert!(driver.counters().is_empty());
}

#[test]
fn add_counter_creates_client_first() {
    let mut driver = DriverFixture::new();
    let (client_id, correlation_id) = (driver.client(), driver.id());
    let answers = driver.ask(&Command::AddCounter {
        client_id,
        correlation_id,
        counter_type_id: 1001,
        key: b"key",
        label: "label",
    });
    assert_eq!(kinds(&answers), ["counter", "counter"]);
    let Response::CounterReady { counter_id, .. } = answers[1].get() else {
        panic!()
    };
    let meta = driver.parts.counters.meta(counter_id).unwrap();
    assert_eq!(
        (meta.type_id, meta.registration_id, meta.owner_id),
        (1001, correlation_id, client_id)
    );
    assert_eq!(
        (&meta.key[..4], meta.label.to_string().as_str()),
        (&b"key\0"[..], "label")
    );
}

#[test]
fn ipc_publication_and_subscription_connect_in_either_order() {
    for publication_first in [true, false] {
        let mut driver = DriverFixture::new();
        let client_id = driver.client();
        let (publish, subscribe) = (driver.id(), driver.id());
        let add_publication = Command::AddPublication {
            client_id,
            correlation_id: publish,
            stream_id: 10,
            channel: IPC,
        };
        let add_subscription = Command::AddSubscription {
            client_id,
            correlation_id: subscribe,
            stream_id: 10,
            channel: IPC,
        };
        let (first, second) = if publication_first {
            (add_publication, add_subscription)
        } else {
            (add_subscription, add_publication)
        };
        driver.ask(&first);
        let answers = driver.ask(&second);
        let expected = if publication_first {
            "subscription"
        } else {
            "publication"
        };
        assert_eq!(kinds(&answers), [expected, "available"]);
        let Response::AvailableImage {
            image_id,
            stream_id,
            subscription_id,
            position_counter_id,
            source_identity,
            ..
        } = answers[1].get()
        else {
            panic!()
        };
        assert_eq!(
            (image_id, stream_id, subscription_id),
            (publish, 10, subscribe)
        );
        assert_eq!(source_identity, "aeron:ipc");
        let meta = driver.parts.counters.meta(position_counter_id).unwrap();
        assert_eq!(
            (meta.registration_id, meta.reference_id),
            (subscribe, publish)
        );
    }
}

#[test]
fn unknown_resources_have_their_error_codes() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let (registration_id, channel) = (4711, UDP);
    let commands = |correlation_id: i64| {
        [
            (
                ErrorCode::UnknownPublication,
                Command::RemovePublication {
                    client_id,
                    correlation_id,
                    registration_id,
                    revoke: false,
                },
            ),
            (
                ErrorCode::UnknownSubscription,
                Command::RemoveSubscription {
                    client_id,
                    correlation_id,
                    registration_id,
                },
            ),
            (
                ErrorCode::UnknownCounter,
                Command::RemoveCounter {
                    client_id,
                    correlation_id,
                    registration_id,
                },
            ),
            (
                ErrorCode::UnknownPublication,
                Command::AddDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
            ),
            (
                ErrorCode::UnknownSubscription,
                Command::AddReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
            ),
            (
                ErrorCode::UnknownSubscription,
                Command::RemoveReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
            ),
            (
                ErrorCode::GenericError,
                Command::RejectImage {
                    client_id,
                    correlation_id,
                    image_id: registration_id,
                    position: 0,
                    reason: b"no",
                },
            ),
        ]
    };
    for index in 0..commands(0).len() {
        let correlation_id = driver.id();
        let (code, command) = &commands(correlation_id)[index];
        let answers = driver.ask(command);
        let refused = error_response(&answers[0], correlation_id).unwrap();
        assert_eq!((refused.code, answers.len()), (*code, 1), "{refused:?}");
        assert_eq!(driver.system(SystemCounter::Errors), index as i64 + 1);
        assert!(
            driver
                .errors()
                .iter()
                .any(|(text, _)| text.contains(&refused.text)),
            "{refused:?}"
        );
    }
}

#[test]
fn removed_resources_are_confirmed_and_freed() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    for channel in [IPC, UDP] {
        let publication = driver.add_publication(client_id, channel, 10).unwrap();
        let (subscription, _) = driver.add_subscription(client_id, channel, 10).unwrap();
        driver.run_for(std::time::Duration::from_millis(500));
        let answers = driver.ask(&Command::RemoveSubscription {
            client_id,
            correlation_id: driver.id(),
            registration_id: subscription,
        });
        assert_eq!(
            kinds(&answers),
            ["success"],
            "no unavailable image for a subscription that is removed"
        );
        let answers = driver.ask(&Command::RemovePublication {
            client_id,
            correlation_id: driver.id(),
            registration_id: publication.correlation_id,
            revoke: false,
        });
        assert_eq!(kinds(&answers), ["success"]);
        driver.run_for(std::time::Duration::from_secs(30));
        assert_eq!(driver.log_files(), [""; 0], "{channel}");
        // Only the client's heartbeat is left.
        assert_eq!(
            driver.counters().len(),
            1,
            "{channel} {:?}",
            driver.labels()
        );
        assert_eq!(driver.network.open_ports(), [0u16; 0]);
    }
}

#[test]
fn counter_is_removed_by_its_client_only() {
    let mut driver = DriverFixture::new();
    let (owner, other) = (driver.client(), driver.client());
    let registration_id = driver.id();
    driver.ask(&Command::AddCounter {
        client_id: owner,
        correlation_id: registration_id,
        counter_type_id: 1001,
        key: b"",
        label: "",
    });
    let correlation_id = driver.id();
    let answers = driver.ask(&Command::RemoveCounter {
        client_id: other,
        correlation_id,
        registration_id,
    });
    assert_eq!(
        error_response(&answers[0], correlation_id).unwrap().code,
        ErrorCode::UnknownCounter
    );
    let answers = driver.ask(&Command::RemoveCounter {
        client_id: owner,
        correlation_id: driver.id(),
        registration_id,
    });
    assert_eq!(kinds(&answers), ["success", "no-counter"]);
}

#[test]
fn static_counter_with_key_of_client_counter_is_rejected() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let registration_id = driver.id();
    driver.ask(&Command::AddCounter {
        client_id,
        correlation_id: registration_id,
        counter_type_id: 1002,
        key: b"k",
        label: "of the client",
    });
    let answers = driver.ask(&Command::AddStaticCounter {
        client_id,
        correlation_id: driver.id(),
        registration_id,
        counter_type_id: 1002,
        key: b"k",
        label: "static",
    });
    let Response::Error {
        error_code,
        message,
        ..
    } = answers[0].get()
    else {
        panic!("{answers:?}")
    };
    assert_eq!(error_code, 11);
    let text = String::from_utf8_lossy(message).into_owned();
    assert!(
        text.starts_with(
            "cannot add static counter, because a non-static counter exists (counterId="
        ),
        "{text}"
    );
    assert!(
        text.contains(&format!("typeId=1002 and registrationId={registration_id}")),
        "{text}"
    );
    // The record of the error log starts like that of the official C driver, which tests and operators search for.
    assert_eq!(
        driver.errors(),
        [(format!("(-11) generic error, see message\n{text}"), 1)]
    );
}

#[test]
fn static_counter_is_shared_and_outlives_its_client() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let command = |correlation_id, registration_id| Command::AddStaticCounter {
        client_id,
        correlation_id,
        registration_id,
        counter_type_id: 1002,
        key: b"k",
        label: "static",
    };
    let answers = driver.ask(&command(driver.id(), 99));
    assert_eq!(kinds(&answers), ["counter", "static"]);
    let Response::StaticCounter { counter_id, .. } = answers[1].get() else {
        panic!()
    };
    let answers = driver.ask(&command(driver.id(), 99));
    let Response::StaticCounter {
        counter_id: found, ..
    } = answers[0].get()
    else {
        panic!()
    };
    assert_eq!(found, counter_id);
    assert_eq!(driver.parts.counters.owner_id(counter_id), Some(-1));

    // Data that a client writes into the file does not change the owner.
    let owner = driver
        .cnc
        .counters_values
        .atomic_i64(counter_id as usize * 128 + 16);
    owner.store(5, std::sync::atomic::Ordering::SeqCst);
    let answers = driver.ask(&command(driver.id(), 99));
    assert_eq!(kinds(&answers), ["static"]);

    driver.ask(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    driver.run_for(std::time::Duration::from_secs(3));
    assert_eq!(
        driver
            .counters()
            .iter()
            .map(|meta| meta.id)
            .collect::<Vec<_>>(),
        [counter_id]
    );

    let owner = driver.client();
    let registration_id = driver.id();
    driver.ask(&Command::AddCounter {
        client_id: owner,
        correlation_id: registration_id,
        counter_type_id: 1002,
        key: b"",
        label: "mine",
    });
    let correlation_id = driver.id();
    let answers = driver.ask(&Command::AddStaticCounter {
        client_id: owner,
        correlation_id,
        registration_id,
        counter_type_id: 1002,
        key: b"",
        label: "",
    });
    assert_eq!(
        error_response(&answers[0], correlation_id).unwrap().code,
        ErrorCode::GenericError
    );
}

#[test]
fn session_ids_are_unique_and_avoid_the_reserved_range() {
    let mut driver = DriverFixture::with(&[
        ("aeron.publication.reserved.session.id.low", "-2147483648"),
        ("aeron.publication.reserved.session.id.high", "-2"),
    ]);
    let client_id = driver.client();
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(driver.add_exclusive(client_id, IPC, 10).unwrap().session_id);
    }
    let answers = driver.ask(&Command::NextAvailableSessionId {
        client_id,
        correlation_id: driver.id(),
        stream_id: 10,
    });
    let Response::NextAvailableSessionId { session_id, .. } = answers[0].get() else {
        panic!()
    };
    sessions.push(session_id);
    let mut distinct = sessions.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 5, "{sessions:?}");
    assert!(sessions.iter().all(|id| *id >= -1), "{sessions:?}");
}

#[test]
fn termination_without_validator_is_denied() {
    let token = b"let me";
    let terminate = Command::TerminateDriver {
        client_id: 0,
        correlation_id: -1,
        token,
    };
    let mut driver = DriverFixture::new();
    assert!(driver.ask(&terminate).is_empty());
    assert_eq!(*driver.terminations.lock().unwrap(), 0);
    let mut driver = DriverFixture::with(&[("aeron.driver.termination.validator", "allow")]);
    assert!(driver.ask(&terminate).is_empty());
    assert_eq!(*driver.terminations.lock().unwrap(), 1);
}

#[test]
fn destinations_without_manual_control_are_rejected() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let udp = driver.add_publication(client_id, UDP, 10).unwrap();
    let ipc = driver.add_publication(client_id, IPC, 10).unwrap();
    let (subscription, _) = driver.add_subscription(client_id, UDP, 10).unwrap();
    for (registration_id, code) in [
        (udp.registration_id, ErrorCode::GenericError),
        (ipc.registration_id, ErrorCode::UnknownPublication),
    ] {
        let correlation_id = driver.id();
        let answers = driver.ask(&Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel: UDP,
        });
        assert_eq!(
            error_response(&answers[0], correlation_id).unwrap().code,
            code
        );
        let correlation_id = driver.id();
        let answers = driver.ask(&Command::RemoveDestinationById {
            client_id,
            correlation_id,
            registration_id,
            destination_id: 1,
        });
        assert_eq!(
            error_response(&answers[0], correlation_id).unwrap().code,
            code
        );
    }
    let correlation_id = driver.id();
    let answers = driver.ask(&Command::AddReceiveDestination {
        client_id,
        correlation_id,
        registration_id: subscription,
        channel: UDP,
    });
    assert_eq!(
        error_response(&answers[0], correlation_id).unwrap().code,
        ErrorCode::InvalidChannel
    );
}

/// Returns every command that has a channel.
fn commands_with_channel(correlation_id: i64, channel: &str) -> [Command<'_>; 7] {
    let (client_id, registration_id, stream_id) = (70, 71, 10);
    [
        Command::AddPublication {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        Command::AddExclusivePublication {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel,
        },
        Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        Command::RemoveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
        Command::RemoveReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        },
    ]
}

/// Encodes a command, with each `#` replaced by a byte that no UTF-8 text contains.
fn with_invalid_text(command: &Command<'_>) -> (i32, Vec<u8>) {
    let mut bytes = Vec::new();
    let type_id = command.encode(&mut bytes);
    for byte in &mut bytes {
        if *byte == b'#' {
            *byte = 0xFF;
        }
    }
    (type_id, bytes)
}

#[test]
fn channel_that_is_not_utf_8_is_answered_with_invalid_channel() {
    let mut driver = DriverFixture::new();
    for number in 0..7 {
        let correlation_id = 1000 + number;
        let command =
            commands_with_channel(correlation_id, "aeron:udp?endpoint=#:40123")[number as usize];
        let (type_id, bytes) = with_invalid_text(&command);
        let errors = driver.system(SystemCounter::Errors);
        driver.commands.write(type_id, &bytes).unwrap();
        driver.settle();
        let answers = driver.messages();
        assert_eq!(kinds(&answers), ["error"], "{command:?}");
        let refused = error_response(&answers[0], correlation_id).unwrap();
        assert_eq!(refused.code, ErrorCode::InvalidChannel);
        assert!(
            refused.text.contains("channel of the command is not UTF-8"),
            "{}",
            refused.text
        );
        assert_eq!(driver.system(SystemCounter::Errors), errors + 1);
    }
    assert!(driver.counters().is_empty());
}

#[test]
fn label_that_is_not_utf_8_is_answered_as_malformed() {
    let mut driver = DriverFixture::new();
    let (client_id, registration_id, counter_type_id) = (70, 71, 1001);
    let commands = [
        Command::AddCounter {
            client_id,
            correlation_id: 1000,
            counter_type_id,
            key: &[],
            label: "#",
        },
        Command::AddStaticCounter {
            client_id,
            correlation_id: 1000,
            registration_id,
            counter_type_id,
            key: &[],
            label: "#",
        },
    ];
    for command in commands {
        let (type_id, bytes) = with_invalid_text(&command);
        driver.commands.write(type_id, &bytes).unwrap();
        driver.settle();
        let answers = driver.messages();
        assert_eq!(kinds(&answers), ["error"], "{command:?}");
        let refused = error_response(&answers[0], 1000).unwrap();
        assert_eq!(refused.code, ErrorCode::MalformedCommand);
    }
    assert!(driver.counters().is_empty());
}

#[test]
fn command_without_correlation_id_is_refused_without_response() {
    let mut driver = DriverFixture::new();
    let (client_id, correlation_id, registration_id) = (70, -1, 71);
    let mut commands = commands_with_channel(correlation_id, "aeron:bad").to_vec();
    commands.extend(commands_with_channel(correlation_id, IPC));
    commands.extend([
        Command::RemovePublication {
            client_id,
            correlation_id,
            registration_id,
            revoke: false,
        },
        Command::RemoveSubscription {
            client_id,
            correlation_id,
            registration_id,
        },
        Command::RemoveCounter {
            client_id,
            correlation_id,
            registration_id,
        },
        Command::AddCounter {
            client_id,
            correlation_id,
            counter_type_id: 1001,
            key: &[],
            label: "label",
        },
        Command::AddStaticCounter {
            client_id,
            correlation_id,
            registration_id,
            counter_type_id: 1001,
            key: &[],
            label: "label",
        },
        Command::RemoveDestinationById {
            client_id,
            correlation_id,
            registration_id,
            destination_id: 72,
        },
        Command::RejectImage {
            client_id,
            correlation_id,
            image_id: 73,
            position: 0,
            reason: b"reason",
        },
        Command::NextAvailableSessionId {
            client_id,
            correlation_id,
            stream_id: 10,
        },
    ]);
    for command in &commands {
        let errors = driver.system(SystemCounter::Errors);
        assert_eq!(kinds(&driver.ask(command)), [""; 0], "{command:?}");
        assert_eq!(
            driver.system(SystemCounter::Errors),
            errors + 1,
            "{command:?}"
        );
    }
    let (type_id, bytes) = with_invalid_text(&commands_with_channel(correlation_id, "aeron:#")[0]);
    driver.commands.write(type_id, &bytes).unwrap();
    driver.settle();
    assert_eq!(kinds(&driver.messages()), [""; 0]);
    assert!(driver.counters().is_empty());
    assert!(
        driver
            .errors()
            .iter()
            .any(|(text, _)| text.contains("correlation id -1")),
        "{:?}",
        driver.errors()
    );
}

#[test]
fn client_close_without_correlation_id_is_no_error() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    driver.add_publication(client_id, IPC, 10).unwrap();
    driver.ask(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    driver.run_for(Duration::from_secs(30));
    assert!(driver.counters().is_empty());
    assert_eq!(driver.system(SystemCounter::Errors), 0);
}
