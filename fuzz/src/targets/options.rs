// SPDX-License-Identifier: Apache-2.0
//! Property files and option values: an accepted value is unchanged when it is printed and parsed again, and any combination
//! results in settings or a list of conflicts.

use taran_driver::context::{Settings, validate};
use taran_protocol::option::{
    IdleRole, OptionId, OptionSet, Source, find_option, parse_properties,
};

use crate::allocation;

/// Memory limit in bytes. Five sets of some 150 options are created for every input; a line may be as short as `a=`, and a
/// text is copied a few times, into errors too.
const COST: usize = 1 << 18;
const COST_PER_BYTE: usize = 256;

thread_local! {
    static FRESH: [OptionSet; 2] = [OptionSet::driver(), OptionSet::client()];
}

fn fresh() -> [OptionSet; 2] {
    FRESH.with(Clone::clone)
}

/// Parses a property file.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    FRESH.with(|_| ()); // created here so that it is not counted
    allocation::within(COST + COST_PER_BYTE * text.len(), || read(text));
}

fn read(text: &str) {
    let defines = match parse_properties(text) {
        Ok(defines) => defines,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(defines.len() <= text.lines().count());
    for (name, value) in &defines {
        assert!(!name.is_empty() && !value.contains('\n'));
    }
    let pairs = || defines.iter().map(|(name, value)| (name, value));
    let [mut driver, mut client] = fresh();
    if let Err(errors) = driver.apply(&Source::Code, pairs()) {
        assert!(!errors.to_string().is_empty());
    }
    let _ = client.apply(&Source::Code, pairs());
    let [mut driver_again, mut client_again] = fresh();
    for (name, _) in &defines {
        if let Some(spec) = find_option(name) {
            again(spec.id, &driver, &mut driver_again);
            again(spec.id, &client, &mut client_again);
        }
    }
    use_them(&driver);
}

/// A printed option parses to the same value.
fn again(id: OptionId, options: &OptionSet, read: &mut OptionSet) {
    if options.source(id) != &Source::Code {
        return;
    }
    let text = options.text(id);
    let accepted = read.set(id, &text, &Source::Code);
    assert!(accepted.is_ok(), "{text} of {id:?}: {accepted:?}");
    if id != OptionId::Profile && read.profile() == options.profile() {
        assert_eq!(read.value(id), options.value(id), "{id:?}");
    }
}

/// Uses the options as a starting driver does.
fn use_them(options: &OptionSet) {
    let conflicts = validate(options);
    for conflict in &conflicts {
        assert!(!conflict.to_string().is_empty());
    }
    let idles = [
        IdleRole::Conductor,
        IdleRole::Sender,
        IdleRole::Receiver,
        IdleRole::SharedNetwork,
        IdleRole::Shared,
    ];
    for role in idles {
        let _ = options.idle(role);
    }
    let _ = options.events();
    let mut debugged = options.clone();
    let changed = debugged.use_debug_timeout();
    assert!(changed.iter().all(|(id, _)| *id != OptionId::DebugTimeout));
    if conflicts.is_empty() {
        let settings = Settings::from_options(options);

        assert!(
            settings
                .names
                .gossip
                .is_none_or(|gossip| !gossip.name.is_empty())
        );
    }
}
