// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::consensus::{AppendFlags, Message, ORIGINAL, ProtocolVersion};

const ANNOUNCED: crate::consensus::NewLeadershipTerm = crate::consensus::NewLeadershipTerm {
    log_term: 3,
    next_term: 5,
    next_base: 960,
    next_end: -1,
    term: 7,
    base: 1_920,
    position: 2_880,
    commit: 1_920,
};

const MESSAGES: [Message; 9] = [
    Message::CanvassPosition {
        log_term: -1,
        position: 0,
        term: 4,
        version: ProtocolVersion::OWN,
        incarnation: ORIGINAL,
    },
    Message::RequestVote {
        log_term: 2,
        position: 96,
        candidate_term: 4,
        version: ProtocolVersion::OWN_TRANSFER,
        voter: ORIGINAL,
    },
    Message::Vote {
        candidate_term: 4,
        log_term: 2,
        position: 96,
        is_granted: true,
    },
    Message::NewLeadershipTerm(ANNOUNCED),
    Message::Admit {
        term: 7,
        incarnation: 1_000_000_007,
    },
    Message::AppendPosition {
        term: 7,
        position: 192,
        flags: AppendFlags::new(true, true, true),
    },
    Message::CommitPosition {
        term: 7,
        position: 192,
    },
    Message::CatchupPosition {
        term: 7,
        position: 96,
    },
    Message::StopCatchup { term: 7 },
];

const CONTEXT: Context<'_> = Context {
    recording_id: 9,
    timestamp: 1_700_000_000_000,
    log_session_id: -77,
    app_version: 1,
    is_startup: false,
    catchup_endpoint: "localhost:40123",
};

#[test]
fn message_that_is_encoded_and_decoded_is_the_same() {
    for message in &MESSAGES {
        let sent = ConsensusMessage::new(message, 1, 2, &CONTEXT);
        let mut buffer = [0; 256];
        let length = sent.encode(&mut buffer).unwrap();
        let received = ConsensusMessage::decode(&buffer[..length]).unwrap();
        assert_eq!(received, sent);
        assert_eq!(received.consensus(2, Some(1)), Some((1, *message)));
    }
}

#[test]
fn message_that_is_cut_is_malformed() {
    for message in &MESSAGES {
        let sent = ConsensusMessage::new(message, 1, 2, &CONTEXT);
        let mut buffer = [0; 256];
        let length = sent.encode(&mut buffer).unwrap();
        for cut in 0..length {
            let error = ConsensusMessage::decode(&buffer[..cut]).unwrap_err();
            assert!(
                matches!(error, MessageError::Malformed(_)),
                "{cut}: {error}"
            );
        }
    }
}

#[test]
fn vote_for_another_candidate_is_not_for_the_core() {
    let vote = Message::Vote {
        candidate_term: 4,
        log_term: 2,
        position: 96,
        is_granted: true,
    };
    let sent = ConsensusMessage::new(&vote, 1, 2, &CONTEXT);
    assert_eq!(sent.consensus(0, None), None);
}

#[test]
fn positions_and_terms_that_make_no_sense_are_not_for_the_core() {
    let negative = Message::AppendPosition {
        term: 7,
        position: -96,
        flags: AppendFlags::default(),
    };
    let last_term = Message::RequestVote {
        log_term: 2,
        position: 96,
        candidate_term: i64::MAX,
        version: ProtocolVersion::OWN,
        voter: ORIGINAL,
    };
    let backwards = Message::NewLeadershipTerm(crate::consensus::NewLeadershipTerm {
        position: 0,
        ..ANNOUNCED
    });
    for message in [negative, last_term, backwards] {
        let sent = ConsensusMessage::new(&message, 1, 2, &CONTEXT);
        assert_eq!(sent.consensus(2, None), None, "{message:?}");
    }
}

#[test]
fn block_of_an_older_version_leaves_newer_fields_out() {
    let message = Message::AppendPosition {
        term: 7,
        position: 192,
        flags: AppendFlags::new(true, false, false),
    };
    let mut buffer = [0; 64];
    let length = ConsensusMessage::new(&message, 1, 2, &CONTEXT)
        .encode(&mut buffer)
        .unwrap();
    // Version 7, from before the flags: block length 20.
    buffer[0..2].copy_from_slice(&20_u16.to_le_bytes());
    buffer[6..8].copy_from_slice(&7_u16.to_le_bytes());
    let received = ConsensusMessage::decode(&buffer[..length]).unwrap();
    let ConsensusMessage::AppendPosition(received) = received else {
        panic!("{received:?}");
    };
    assert_eq!(received.flags, AppendFlags::default());
}

#[test]
fn other_template_is_unexpected() {
    let mut buffer = [0; 64];
    buffer[0..8].copy_from_slice(&[0, 0, 70, 0, 111, 0, 16, 0]);
    assert_eq!(
        ConsensusMessage::decode(&buffer),
        Err(MessageError::UnexpectedTemplate { template_id: 70 })
    );
}
