//! The head of an HTTP request, as far as it has come.

/// Most headers of a request.
const HEADERS: usize = 64;

/// A method and a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) is_head: bool,
    pub(super) is_get: bool,
    pub(super) path: String,
}

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    Whole(Request),
    /// More has to come.
    Begun,
    TooLarge,
    Bad(httparse::Error),
}

/// Reads a head.
pub(super) fn head(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {
            let method = request.method.unwrap_or("");
            Head::Whole(Request {
                is_head: method == "HEAD",
                is_get: method == "GET",
                path: path_of(request.path.unwrap_or("")).to_owned(),
            })
        }
        Ok(httparse::Status::Partial) => Head::Begun,
        Err(httparse::Error::TooManyHeaders) => Head::TooLarge,
        Err(error) => Head::Bad(error),
    }
}

/// The path of a request target, which proxies write with the server before it (RFC 9112 §3.2.2).
fn path_of(target: &str) -> &str {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    };
    path.split('?').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SCRAPE: &[u8] =
        b"GET /metrics?a=b HTTP/1.1\r\nHost: localhost:9464\r\nAccept: text/plain;q=0.5\r\n\r\n";

    #[test]
    fn targets_may_name_the_server() {
        for (target, path) in [
            ("/metrics", "/metrics"),
            ("/metrics?a=b", "/metrics"),
            ("http://localhost:9464/metrics?a", "/metrics"),
            ("http://localhost", "/"),
        ] {
            assert_eq!(path_of(target), path);
        }
    }

    #[test]
    fn a_head_comes_in_parts() {
        for end in 0..SCRAPE.len() {
            assert_eq!(head(&SCRAPE[..end]), Head::Begun, "{end} bytes");
        }
        let request = Request {
            is_head: false,
            is_get: true,
            path: "/metrics".to_owned(),
        };
        assert_eq!(head(SCRAPE), Head::Whole(request));
    }

    #[test]
    fn headers_have_a_limit() {
        let with = |count| {
            [
                b"GET / HTTP/1.1\r\n",
                &b"a: b\r\n".repeat(count)[..],
                b"\r\n",
            ]
            .concat()
        };
        assert!(matches!(head(&with(HEADERS)), Head::Whole(_)));
        assert_eq!(head(&with(HEADERS + 1)), Head::TooLarge);
    }

    /// Noise, and a true head with noise over it.
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

        /// What is decided stays decided, whatever comes behind it, and a path is a part of what was sent.
        #[test]
        fn any_bytes_are_a_head_or_none(bytes in anything(), more in vec(any::<u8>(), 0..50)) {
            let decided = head(&bytes);
            if decided != Head::Begun {
                prop_assert_eq!(&decided, &head(&[&bytes[..], &more].concat()));
            }
            if let Head::Whole(request) = decided {
                let path = request.path.as_bytes();
                let is_sent = path == b"/" || path.is_empty() || bytes.windows(path.len()).any(|part| part == path);
                prop_assert!(is_sent && !path.contains(&b'?') && !path.contains(&b'\n'));
                prop_assert!(!(request.is_get && request.is_head));
            }
        }
    }
}
