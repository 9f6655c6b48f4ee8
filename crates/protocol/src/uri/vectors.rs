// SPDX-License-Identifier: Apache-2.0
//! Table of channels that are accepted or rejected, for tests of this crate and of drivers (feature `vectors`).

use super::param::Role;
use crate::error_code::ErrorCode;

const TABLE: &str = include_str!("../../tests/vectors/channels.txt");

/// Information needed to accept or reject a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The text of the channel.
    Uri,
    /// The existing resources of the driver.
    Driver,
    /// The interfaces, socket limits or ports of this machine.
    Os,
    /// Name resolution.
    Dns,
}

/// Line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Line number, from 1.
    pub line: usize,
    /// True if the resources of the previous lines exist; otherwise the driver is empty.
    pub continues: bool,
    /// Role of the channel.
    pub role: Role,
    /// True if the publication is exclusive.
    pub exclusive: bool,
    /// Stream id.
    pub stream_id: i32,
    /// Expected error code; `None` if the channel is accepted.
    pub expected_error: Option<ErrorCode>,
    /// Information needed to decide.
    pub needs: Needs,
    template: &'static str,
}

impl Vector {
    /// Returns the channel with a port and the last byte of a multicast group, which must be odd, filled in.
    #[must_use]
    pub fn channel(&self, port: u16, group: u8) -> String {
        if let Some(whole) = self.template.strip_prefix('!') {
            return whole.to_owned();
        }
        let text = match self.template.split_at(1) {
            ("U", more) if more.is_empty() || more.starts_with('|') => {
                format!("udp?endpoint=localhost:{port}{more}")
            }
            ("M", more) => format!("udp?endpoint=224.0.1.{group}:{port}|interface=localhost{more}"),
            _ => self.template.to_owned(),
        };
        format!("aeron:{text}")
    }
}

/// Returns all lines of the table.
///
/// # Panics
/// If the table is malformed, which is a defect of this crate.
#[must_use]
pub fn all() -> Vec<Vector> {
    TABLE
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, text)| match parse(index + 1, text) {
            Some(vector) => vector,
            None => panic!("line {} of the table is malformed: {text}", index + 1),
        })
        .collect()
}

fn parse(line: usize, text: &'static str) -> Option<Vector> {
    let mut columns = text.split_whitespace();
    let role_column = columns.next()?;
    let expected = columns.next()?;
    let _official = columns.next()?;
    let needs = match columns.next()? {
        "uri" => Needs::Uri,
        "driver" => Needs::Driver,
        "os" => Needs::Os,
        "dns" => Needs::Dns,
        _ => return None,
    };
    let template = columns.next()?;
    let (continues, role_column) = match role_column.strip_prefix('+') {
        Some(role_column) => (true, role_column),
        None => (false, role_column),
    };
    let (role_column, stream_id) = match role_column.split_once('@') {
        Some((role_column, stream)) => (role_column, stream.parse().ok()?),
        None => (role_column, 10),
    };
    let role = match role_column {
        "P" | "X" => Role::Publication,
        "S" => Role::Subscription,
        "D" => Role::SendDestination,
        "R" => Role::ReceiveDestination,
        _ => return None,
    };
    Some(Vector {
        line,
        continues,
        role,
        exclusive: role_column == "X",
        stream_id,
        expected_error: match expected {
            "ok" => None,
            code => Some(ErrorCode::from_code(code.parse().ok()?)),
        },
        needs,
        template,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option::OptionSet;
    use crate::uri::{Channel, PublicationParams, SubscriptionParams, UriError};

    fn read(vector: &Vector) -> Result<(), UriError> {
        let options = OptionSet::driver();
        let channel = Channel::read(&vector.channel(40123, 7), vector.role)?;
        match vector.role {
            Role::Publication => {
                PublicationParams::new(&channel, &options.publication_defaults()).map(drop)
            }
            Role::Subscription => {
                SubscriptionParams::new(&channel, &options.subscription_defaults()).map(drop)
            }
            Role::SendDestination | Role::ReceiveDestination => Ok(()),
        }
    }

    #[test]
    fn channel_vectors_match_table() {
        for vector in all() {
            let result = read(&vector);
            let code = result.as_ref().err().map(|e| e.code);
            match vector.needs {
                Needs::Uri => assert_eq!(code, vector.expected_error, "{vector:?}: {result:?}"),
                // The text is valid; other information decides.
                Needs::Driver | Needs::Os | Needs::Dns => {
                    assert_eq!(code, None, "{vector:?}: {result:?}");
                }
            }
        }
    }

    #[test]
    fn error_text_quotes_channel() {
        for vector in all() {
            if let Err(error) = read(&vector) {
                let channel = vector.channel(40123, 7);
                assert!(error.text.contains(&channel), "{error}");
                let invalid = error.code == ErrorCode::InvalidChannel;
                assert_eq!(
                    error.text.starts_with("invalid channel: "),
                    invalid,
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn channel_table_parses_completely() {
        assert_eq!(
            all().len(),
            TABLE
                .lines()
                .filter(|l| !l.is_empty() && !l.starts_with('#'))
                .count()
        );
        assert!(all().len() > 150);
    }
}
