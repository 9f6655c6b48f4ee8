// SPDX-License-Identifier: Apache-2.0
//! The rules that a request has to meet: host, site, token, and no proxy without a token.

use std::net::IpAddr;

use super::token::Token;
use crate::http::Request;

/// Rules for requests.
#[derive(Debug)]
pub(super) struct Access {
    token: Option<Token>,
    /// Value of the cookie. Other servers on this host get the cookie too: it is a secret of this run and not the token, which may
    /// be used for longer.
    session: Token,
    /// Names, besides `localhost`, that a request may be for.
    hosts: Vec<String>,
    /// Name of the cookie. Cookies of a host are sent to all of its ports, so the port is part of it.
    cookie: String,
}

/// Rule that a request does not meet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request is for this name, which may belong to another site.
    Host(String),
    /// A page of another site has made the request.
    Site,
    /// There is no token, or another one.
    Token,
    /// A proxy has sent the request, as this header tells, and the console has no token.
    Proxy(&'static str),
}

/// Headers by which proxies tell that a request is of another client.
const OF_PROXIES: [&str; 5] = [
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Real-IP",
    "Via",
];

impl Access {
    pub(super) fn new(token: Option<Token>, session: Token, hosts: Vec<String>, port: u16) -> Self {
        Self {
            token,
            session,
            hosts,
            cookie: format!("taran-console-{port}"),
        }
    }

    /// Checks the host, which a page of another site could have pointed to this server by its name service (DNS rebinding).
    /// An IP address cannot be pointed elsewhere.
    pub(super) fn check_host(&self, request: &Request) -> Result<(), Refusal> {
        let host = request.header("Host").unwrap_or_default();
        let name = name_of(&host);
        let is_allowed = name.parse::<IpAddr>().is_ok()
            || std::iter::once("localhost")
                .chain(self.hosts.iter().map(String::as_str))
                .any(|allowed| name.eq_ignore_ascii_case(allowed));
        if is_allowed {
            Ok(())
        } else {
            Err(Refusal::Host(host))
        }
    }

    /// Checks that no page of another site has made the request; browsers tell so. Such a page could not read the response, but
    /// hold connections.
    pub(super) fn check_site(request: &Request) -> Result<(), Refusal> {
        match request.header("Sec-Fetch-Site").as_deref() {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => Err(Refusal::Site),
        }
    }

    /// Checks the token after `Authorization: Bearer`, or the cookie of a client that has given the token before. A console without
    /// a token answers this machine only, so nothing that a proxy sends for others.
    pub(super) fn check_token(&self, request: &Request) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            let of_proxy = |name: &&'static str| request.header(name).is_some();
            let found = OF_PROXIES.into_iter().find(of_proxy);
            return found.map_or(Ok(()), |name| Err(Refusal::Proxy(name)));
        };
        let bearer = request.header("Authorization");
        let bearer = bearer
            .as_deref()
            .and_then(|value| value.strip_prefix("Bearer "));
        let cookies = request.header("Cookie").unwrap_or_default();
        let cookie = cookies
            .split([';', ','])
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find_map(|(name, value)| (name == self.cookie).then_some(value));
        if bearer.is_some_and(|it| token.is(it)) || cookie.is_some_and(|it| self.session.is(it)) {
            Ok(())
        } else {
            Err(Refusal::Token)
        }
    }

    /// Returns the cookie for a request whose query has the token. If a proxy tells that the browser speaks TLS with it, the browser
    /// sends the cookie over TLS only.
    pub(super) fn log_in(&self, request: &Request) -> Option<String> {
        let token = self.token.as_ref()?;
        let given = request
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix("token="))?;
        token.is(given).then(|| {
            let (name, session) = (&self.cookie, self.session.as_str());
            let secure = if is_over_tls(request) { "; Secure" } else { "" };
            format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict{secure}")
        })
    }
}

/// Returns true if a proxy tells that the client speaks TLS. Of several proxies the first one counts, to which the client speaks. A
/// client that lies about it only restricts its own cookie.
fn is_over_tls(request: &Request) -> bool {
    let is_https = |value: &str| value.trim().trim_matches('"').eq_ignore_ascii_case("https");
    let protocols = request.header("X-Forwarded-Proto").unwrap_or_default();
    let forwarded = request.header("Forwarded").unwrap_or_default();
    let pairs = forwarded.split(',').take(1).flat_map(|it| it.split(';'));
    let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    protocols.split(',').take(1).any(is_https)
        || pairs.any(|(name, value)| name.eq_ignore_ascii_case("proto") && is_https(value))
}

/// Returns a host without its port, and an IPv6 address without its brackets.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or("");
    }
    host.split(':').next().unwrap_or("").trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &str) -> Request {
        Request::parse(&format!(
            "GET /?token=0123456789abcdef HTTP/1.1\r\n{headers}\r\n"
        ))
    }

    fn access(token: bool) -> Access {
        let token = token.then(|| Token::parse("0123456789abcdef").unwrap());
        let session = Token::parse("fedcba9876543210").unwrap();
        Access::new(token, session, vec!["desk.example".to_owned()], 8080)
    }

    #[test]
    fn check_host_takes_addresses_localhost_and_given_names() {
        let access = access(false);
        for host in [
            "127.0.0.1:8080",
            "127.0.0.1",
            "[::1]:8080",
            "192.0.2.7:1",
            "localhost:8080",
            "LocalHost",
            "desk.example.:8080",
        ] {
            let request = request(&format!("Host: {host}\r\n"));
            assert_eq!(access.check_host(&request), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "localhost,evil.example",
        ] {
            let refused = access.check_host(&request(&format!("Host: {host}\r\n")));
            assert_eq!(refused, Err(Refusal::Host(host.to_owned())));
        }
        assert!(access.check_host(&request("")).is_err());
    }

    #[test]
    fn check_site_refuses_pages_of_other_sites() {
        for (headers, is_ok) in [
            ("", true),
            ("Sec-Fetch-Site: same-origin\r\n", true),
            ("Sec-Fetch-Site: none\r\n", true),
            ("Sec-Fetch-Site: same-site\r\n", false),
            ("Sec-Fetch-Site: cross-site\r\n", false),
        ] {
            assert_eq!(
                Access::check_site(&request(headers)).is_ok(),
                is_ok,
                "{headers}"
            );
        }
    }

    #[test]
    fn check_token_takes_cookie_or_bearer() {
        let access = access(true);
        for (headers, is_ok) in [
            (
                "Cookie: a=b; taran-console-8080=fedcba9876543210; c=d\r\n",
                true,
            ),
            ("Authorization: Bearer 0123456789abcdef\r\n", true),
            ("Cookie: taran-console-8081=fedcba9876543210\r\n", false),
            ("Cookie: taran-console-8080=fedcba9876543211\r\n", false),
            ("Cookie: taran-console-8080=0123456789abcdef\r\n", false),
            ("Authorization: Bearer fedcba9876543210\r\n", false),
            ("Authorization: Basic 0123456789abcdef\r\n", false),
            ("", false),
        ] {
            let checked = access.check_token(&request(headers));
            assert_eq!(checked.is_ok(), is_ok, "{headers}");
        }
    }

    #[test]
    fn check_token_without_token_refuses_what_proxies_send() {
        assert_eq!(access(false).check_token(&request("")), Ok(()));
        let proxied = request("x-forwarded-for: 192.0.2.7\r\n");
        let refused = Err(Refusal::Proxy("X-Forwarded-For"));
        assert_eq!(access(false).check_token(&proxied), refused);
        let with_token = "Via: 1.1 proxy\r\nAuthorization: Bearer 0123456789abcdef\r\n";
        assert_eq!(access(true).check_token(&request(with_token)), Ok(()));
    }

    #[test]
    fn log_in_with_token_gives_a_cookie() {
        let cookie = access(true).log_in(&request("")).unwrap();
        assert_eq!(
            cookie,
            "taran-console-8080=fedcba9876543210; Path=/; HttpOnly; SameSite=Strict"
        );
        for (header, is_secure) in [
            ("X-Forwarded-Proto: https", true),
            ("X-Forwarded-Proto: http", false),
            ("X-Forwarded-Proto: https, http", true),
            ("X-Forwarded-Proto: http, https", false),
            ("Forwarded: for=192.0.2.7;Proto=\"https\"", true),
            ("Forwarded: for=192.0.2.7;proto=http", false),
            ("Forwarded: proto=http, for=192.0.2.7;proto=https", false),
        ] {
            let cookie = access(true).log_in(&request(&format!("{header}\r\n")));
            let ends = cookie.unwrap().ends_with("; SameSite=Strict; Secure");
            assert_eq!(ends, is_secure, "{header}");
        }
        let wrong = Request::parse("GET /?a=b&token=0123456789abcdee HTTP/1.1\r\n\r\n");
        assert_eq!(access(true).log_in(&wrong), None);
        assert_eq!(access(false).log_in(&request("")), None);
    }
}
