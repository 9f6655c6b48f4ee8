// SPDX-License-Identifier: Apache-2.0
//! Messages of the control protocol of archives, in both directions.

use taran_archive_client::protocol::{Event, RecordingEvent, Request};

use crate::allocation;

/// Decodes a message as a request, as a response and as a recording event; what is decoded is the same when written again.
pub fn run(bytes: &[u8]) {
    // Texts and data are borrowed from the message.
    let (request, event, recording) = allocation::within(0, || {
        (
            Request::decode(bytes),
            Event::decode(bytes),
            RecordingEvent::decode(bytes),
        )
    });
    // The current version may have more fields than the message.
    let mut buffer = vec![0; bytes.len() + 512];
    if let Ok(request) = request {
        let length = request.encode(&mut buffer).expect("there is room");
        assert_eq!(Request::decode(&buffer[..length]), Ok(request));
    }
    if let Ok(event) = event {
        let length = event.encode(&mut buffer).expect("there is room");
        assert_eq!(Event::decode(&buffer[..length]), Ok(event));
    }
    if let Ok(event) = recording {
        let length = event.encode(&mut buffer).expect("there is room");
        assert_eq!(RecordingEvent::decode(&buffer[..length]), Ok(event));
    }
}
