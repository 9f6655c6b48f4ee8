// SPDX-License-Identifier: Apache-2.0
//! Ingress endpoints of members, as clients and redirects state them.

use thiserror::Error;

use super::MemberId;

/// Reason why a text is no list of ingress endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the ingress endpoints `{text}` are no list of id=host:port, joined by commas: {reason}")]
pub struct EndpointsError {
    text: String,
    reason: &'static str,
}

/// Ingress endpoint of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressEndpoint {
    /// Member.
    pub member_id: MemberId,
    /// Host and port.
    pub endpoint: String,
}

/// Reads a list like `0=host:port,1=host:port`.
///
/// # Errors
/// The list is empty, an item has no id or no endpoint, or an id occurs twice.
pub fn parse_endpoints(text: &str) -> Result<Vec<IngressEndpoint>, EndpointsError> {
    let error = |reason| EndpointsError {
        text: text.to_owned(),
        reason,
    };
    let mut endpoints: Vec<IngressEndpoint> = Vec::new();
    for item in text.split(',') {
        let (id, endpoint) = item
            .split_once('=')
            .ok_or_else(|| error("an item has no `=`"))?;
        let member_id = id.trim().parse().map_err(|_| error("an id is no number"))?;
        let endpoint = endpoint.trim().to_owned();
        if endpoint.is_empty() {
            return Err(error("an endpoint is empty"));
        }
        if endpoints.iter().any(|other| other.member_id == member_id) {
            return Err(error("an id occurs twice"));
        }
        endpoints.push(IngressEndpoint {
            member_id,
            endpoint,
        });
    }
    Ok(endpoints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_pairs_of_id_and_endpoint() {
        let endpoints = parse_endpoints("0=a:1, 2=[::1]:3").unwrap();
        let pairs: Vec<_> = endpoints
            .iter()
            .map(|it| (it.member_id, &*it.endpoint))
            .collect();
        assert_eq!(pairs, [(0, "a:1"), (2, "[::1]:3")]);
    }

    #[test]
    fn list_that_cannot_be_read_is_an_error_with_the_reason() {
        for (text, reason) in [
            ("", "no `=`"),
            ("a:1", "no `=`"),
            ("x=a:1", "no number"),
            ("0=a:1,", "no `=`"),
            ("0=", "is empty"),
            ("0=a:1,0=b:1", "twice"),
        ] {
            let error = parse_endpoints(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
