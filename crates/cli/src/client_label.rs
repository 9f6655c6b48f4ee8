// SPDX-License-Identifier: Apache-2.0
//! Labels of the heartbeats of clients.

/// The parts of the label of a client's heartbeat; empty if absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientLabel<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) commit: &'a str,
}

impl<'a> ClientLabel<'a> {
    /// Parses `client-heartbeat: id=7 name=risk version=1.51.0 commit=abc`.
    pub(crate) fn parse(label: &'a str) -> Self {
        let part = |text: &'a str, key| text.split_once(key).map_or((text, ""), |parts| parts);
        let (rest, commit) = part(label, " commit=");
        let (rest, version) = part(rest, " version=");
        let (_, name) = part(rest, " name=");
        Self {
            name,
            version,
            commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_label_is_split_into_its_parts() {
        let label = "client-heartbeat: id=7 name=risk engine version=1.51.0 commit=abc";
        let expected = ClientLabel {
            name: "risk engine",
            version: "1.51.0",
            commit: "abc",
        };
        assert_eq!(ClientLabel::parse(label), expected);
        let unnamed = ClientLabel::parse("client-heartbeat: id=7");
        assert_eq!(unnamed, ClientLabel::default());
    }
}
