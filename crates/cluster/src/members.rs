// SPDX-License-Identifier: Apache-2.0
//! Members of a cluster (`docs/spec/cluster.md` §1.2).

use std::fmt::{self, Display, Formatter, Write as _};

use thiserror::Error;

use crate::consensus::MemberId;

/// Reason why a text is no list of members.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// A member with too few or too many fields.
    #[error(
        "aeron.cluster.members has a member with {count} fields: `{member}`; a member is \
         id,ingress,consensus,log,catchup,archive[,archive response[,egress response]]"
    )]
    FieldCount {
        /// Text of the member.
        member: String,
        /// Number of fields.
        count: usize,
    },
    /// An id that is no number.
    #[error("aeron.cluster.members has a member with the id `{id}`; it is a number")]
    InvalidId {
        /// Text of the id.
        id: String,
    },
    /// An id that comes twice.
    #[error("aeron.cluster.members has two members with the id {id}")]
    DuplicateId {
        /// The id.
        id: MemberId,
    },
    /// An endpoint without port.
    #[error("aeron.cluster.members has the endpoint `{endpoint}`; an endpoint is host:port")]
    InvalidEndpoint {
        /// Text of the endpoint.
        endpoint: String,
    },
}

/// A member and its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Id.
    pub id: MemberId,
    /// Endpoint for clients.
    pub ingress: String,
    /// Endpoint for consensus messages.
    pub consensus: String,
    /// Endpoint that receives the live log.
    pub log: String,
    /// Endpoint that receives replays of the log; its port may be 0.
    pub catchup: String,
    /// Control endpoint of the archive.
    pub archive: String,
    /// Further endpoints, as in the text.
    pub responses: Vec<String>,
}

/// Members of a cluster, in the order of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<Member>);

impl Members {
    /// Reads `aeron.cluster.members`.
    ///
    /// # Errors
    /// A member has not 6 to 8 fields, an id is no number or comes twice, or an endpoint has no port.
    pub fn parse(text: &str) -> Result<Self, MembersError> {
        let mut members: Vec<Member> = Vec::new();
        for member in text.split('|') {
            let fields: Vec<&str> = member.split(',').collect();
            let [
                id,
                ingress,
                consensus,
                log,
                catchup,
                archive,
                responses @ ..,
            ] = &fields[..]
            else {
                return Err(MembersError::FieldCount {
                    member: member.to_owned(),
                    count: fields.len(),
                });
            };
            if responses.len() > 2 {
                return Err(MembersError::FieldCount {
                    member: member.to_owned(),
                    count: fields.len(),
                });
            }
            let id: MemberId = id.trim().parse().map_err(|_| MembersError::InvalidId {
                id: (*id).to_owned(),
            })?;
            if members.iter().any(|other| other.id == id) {
                return Err(MembersError::DuplicateId { id });
            }
            for endpoint in [ingress, consensus, log, catchup, archive] {
                let port = endpoint
                    .rsplit_once(':')
                    .map(|(host, port)| (host, port.parse::<u16>()));
                if !matches!(port, Some((host, Ok(_))) if !host.is_empty()) {
                    return Err(MembersError::InvalidEndpoint {
                        endpoint: (*endpoint).to_owned(),
                    });
                }
            }
            members.push(Member {
                id,
                ingress: (*ingress).to_owned(),
                consensus: (*consensus).to_owned(),
                log: (*log).to_owned(),
                catchup: (*catchup).to_owned(),
                archive: (*archive).to_owned(),
                responses: responses.iter().map(|text| (*text).to_owned()).collect(),
            });
        }
        Ok(Self(members))
    }

    /// Returns the members.
    #[must_use]
    pub fn all(&self) -> &[Member] {
        &self.0
    }

    /// Returns a member.
    #[must_use]
    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.0.iter().find(|member| member.id == id)
    }

    /// Returns all ids.
    #[must_use]
    pub fn ids(&self) -> Vec<MemberId> {
        self.0.iter().map(|member| member.id).collect()
    }

    /// Returns the ingress endpoints as clients get them: `id=endpoint`, joined by commas.
    #[must_use]
    pub fn ingress_endpoints(&self) -> String {
        let mut text = String::new();
        for (index, member) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{}={}", member.id, member.ingress);
        }
        text
    }
}

/// The text of `aeron.cluster.members`.
impl Display for Members {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (index, member) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "|" };
            write!(out, "{separator}{}", member.id)?;
            let fields = [
                &member.ingress,
                &member.consensus,
                &member.log,
                &member.catchup,
                &member.archive,
            ];
            for field in fields.into_iter().chain(&member.responses) {
                write!(out, ",{field}")?;
            }
        }
        Ok(())
    }
}

/// Returns the host of an endpoint.
#[must_use]
pub fn host(endpoint: &str) -> &str {
    endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "0,a:1,a:2,a:3,a:0,a:5|1,[::1]:1,b:2,b:3,b:4,b:5,b:6";

    #[test]
    fn members_have_the_endpoints_of_their_fields() {
        let members = Members::parse(TWO).unwrap();
        assert_eq!(members.ids(), [0, 1]);
        assert_eq!(members.to_string(), TWO);
        assert_eq!(members.ingress_endpoints(), "0=a:1,1=[::1]:1");
        let second = members.get(1).unwrap();
        assert_eq!(
            (&*second.archive, &second.responses[..]),
            ("b:5", &["b:6".to_owned()][..])
        );
        assert_eq!(host(&second.ingress), "[::1]");
    }

    #[test]
    fn text_that_is_no_list_of_members_is_an_error_that_says_why() {
        let error = |text: &str| Members::parse(text).unwrap_err().to_string();
        assert!(error("").contains("1 fields"));
        assert!(error("0,a:1,a:2,a:3,a:4").contains("5 fields"));
        assert!(error("0,a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8").contains("9 fields"));
        assert!(error("x,a:1,a:2,a:3,a:4,a:5").contains("`x`"));
        assert!(error("0,a,a:2,a:3,a:4,a:5").contains("`a`"));
        assert!(error("0,a:99999,a:2,a:3,a:4,a:5").contains("host:port"));
        assert!(error("0,a:1,a:2,a:3,a:4,a:5|0,a:1,a:2,a:3,a:4,a:5").contains("two members"));
    }
}
