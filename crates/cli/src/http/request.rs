// SPDX-License-Identifier: Apache-2.0
//! Incremental parser for the head of an HTTP request.

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// Head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) is_head: bool,
    pub(crate) is_get: bool,
    pub(crate) path: String,
    /// Part of the target behind the first question mark; empty if there is none.
    pub(crate) query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// Returns the value of a header; the values of several headers of this name are joined by commas. `None` if there is
    /// none.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self
            .headers
            .iter()
            .filter(|(present, _)| present.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect();
        (!values.is_empty()).then(|| values.join(","))
    }
}

#[cfg(test)]
impl Request {
    /// Parses a complete head.
    pub(crate) fn parse(text: &str) -> Self {
        match parse_head(text.as_bytes()) {
            ParsedHead::Complete(request) => request,
            other => panic!("{other:?}"),
        }
    }
}

/// Result of parsing the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedHead {
    Complete(Request),
    /// The head is incomplete.
    Partial,
    TooLarge,
    Malformed(httparse::Error),
}

/// Parses the head of a request.
pub(super) fn parse_head(bytes: &[u8]) -> ParsedHead {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {
            let method = request.method.unwrap_or("");
            let (path, query) = split(request.path.unwrap_or(""));
            ParsedHead::Complete(Request {
                is_head: method == "HEAD",
                is_get: method == "GET",
                path: path.to_owned(),
                query: query.to_owned(),
                headers: headers_of(request.headers),
            })
        }
        Ok(httparse::Status::Partial) => ParsedHead::Partial,
        Err(httparse::Error::TooManyHeaders) => ParsedHead::TooLarge,
        Err(error) => ParsedHead::Malformed(error),
    }
}

fn headers_of(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let owned = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value);
        (header.name.to_owned(), value.into_owned())
    };
    headers.iter().map(owned).collect()
}

/// Returns path and query of a request target. Proxies put the server before the path (RFC 9112 §3.2.2).
fn split(target: &str) -> (&str, &str) {
    let target = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    };
    target.split_once('?').unwrap_or((target, ""))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SCRAPE: &[u8] =
        b"GET /metrics?a=b HTTP/1.1\r\nHost: localhost:9464\r\nAccept: text/plain;q=0.5\r\n\r\n";

    #[test]
    fn split_of_absolute_target_omits_the_server() {
        for (target, path, query) in [
            ("/metrics", "/metrics", ""),
            ("/metrics?a=b?c", "/metrics", "a=b?c"),
            ("http://localhost:9464/metrics?a", "/metrics", "a"),
            ("http://localhost", "/", ""),
        ] {
            assert_eq!(split(target), (path, query));
        }
    }

    #[test]
    fn header_joins_values_of_one_name() {
        let head = b"GET / HTTP/1.1\r\naccept: a\r\nHost: x\r\nACCEPT: b\r\n\r\n";
        let ParsedHead::Complete(request) = parse_head(head) else {
            panic!("the head is complete");
        };
        assert_eq!(request.header("Accept").as_deref(), Some("a,b"));
        assert_eq!(request.header("host").as_deref(), Some("x"));
        assert_eq!(request.header("Origin"), None);
    }

    #[test]
    fn parse_head_of_prefix_is_partial() {
        for end in 0..SCRAPE.len() {
            assert_eq!(
                parse_head(&SCRAPE[..end]),
                ParsedHead::Partial,
                "{end} bytes"
            );
        }
        let request = Request {
            is_head: false,
            is_get: true,
            path: "/metrics".to_owned(),
            query: "a=b".to_owned(),
            headers: vec![
                ("Host".to_owned(), "localhost:9464".to_owned()),
                ("Accept".to_owned(), "text/plain;q=0.5".to_owned()),
            ],
        };
        assert_eq!(parse_head(SCRAPE), ParsedHead::Complete(request));
    }

    #[test]
    fn parse_head_with_too_many_headers_is_too_large() {
        let with = |count| {
            [
                b"GET / HTTP/1.1\r\n",
                &b"a: b\r\n".repeat(count)[..],
                b"\r\n",
            ]
            .concat()
        };
        assert!(matches!(
            parse_head(&with(MAX_HEADERS)),
            ParsedHead::Complete(_)
        ));
        assert_eq!(parse_head(&with(MAX_HEADERS + 1)), ParsedHead::TooLarge);
    }

    /// Random bytes, and a valid head with some bytes replaced.
    fn anything() -> impl Strategy<Value = Vec<u8>> {
        let damage = vec((0..SCRAPE.len(), any::<u8>()), 0..4);
        let damaged = damage.prop_map(|damage| {
            let mut bytes = SCRAPE.to_vec();
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            bytes
        });
        prop_oneof![vec(any::<u8>(), 0..300), damaged]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// A result other than `Partial` does not change with further bytes, and a path is a part of the input.
        #[test]
        fn parse_head_of_random_bytes_is_stable(bytes in anything(), more in vec(any::<u8>(), 0..50)) {
            let parsed = parse_head(&bytes);
            if parsed != ParsedHead::Partial {
                prop_assert_eq!(&parsed, &parse_head(&[&bytes[..], &more].concat()));
            }
            if let ParsedHead::Complete(request) = parsed {
                let path = request.path.as_bytes();
                let is_sent = path == b"/" || path.is_empty() || bytes.windows(path.len()).any(|part| part == path);
                prop_assert!(is_sent && !path.contains(&b'?') && !path.contains(&b'\n'));
                prop_assert!(!(request.is_get && request.is_head));
            }
        }
    }
}
