// SPDX-License-Identifier: Apache-2.0
//! Key files and trust files: a result for any text, bounded allocation, and texts that read the same when printed.

use taran_secure::identity::{Identity, parse_psk, parse_public_key, psk_text, public_key_text};
use taran_secure::pattern::Patterns;
use taran_secure::provider::DefaultProvider;
use taran_secure::trust::{TrustStore, without_peer};

use crate::allocation;

/// Reads a text in every role.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let budget = 4_096 + 64 * text.len();
    allocation::within(budget, || {
        if let Ok(identity) = Identity::parse::<DefaultProvider>(text) {
            let printed = identity.to_text::<DefaultProvider>();
            let read = Identity::parse::<DefaultProvider>(&printed).expect("it was printed");
            assert_eq!(read.public(), identity.public());
        }
    });
    if let Ok(key) = parse_public_key::<DefaultProvider>(text) {
        assert_eq!(public_key_text::<DefaultProvider>(&key), text);
    }
    if let Ok(psk) = parse_psk::<DefaultProvider>(text) {
        let printed = psk_text::<DefaultProvider>(&psk);
        assert_eq!(parse_psk::<DefaultProvider>(&printed), Ok(psk));
    }
    if let Ok(patterns) = Patterns::parse(text) {
        assert_eq!(Patterns::parse(&patterns.to_string()), Ok(patterns));
    }
    let store = allocation::within(budget, || TrustStore::parse::<DefaultProvider>(text));
    if let Ok(store) = store {
        for peer in store.peers() {
            let (rest, removed) =
                without_peer::<DefaultProvider>(text, peer.name()).expect("the file is valid");
            assert!(removed > 0 && rest.len() < text.len());
        }
    } else if let Err(error) = store {
        assert!(error.line <= text.lines().count() + 1 && error.column >= 1);
    }
}
