// SPDX-License-Identifier: Apache-2.0
//! Replies of the console to requests.

use std::sync::Arc;

use super::access::{Access, Refusal};
use super::feed::Feed;
use super::page;
use crate::http::{Limits, Reply, Request, Response};
use crate::printable;

pub(super) const LIMITS: Limits = Limits {
    connections: 32,
    // Cookies of other servers on the same host belong to the request.
    request_bytes: 32 * 1024,
};

/// Headers of all responses: nothing from elsewhere is loaded, nothing in the page is code but the files of the console, and no
/// other page can frame it.
const HEADERS: &str = "\
Cache-Control: no-store\r
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r
Cross-Origin-Opener-Policy: same-origin\r
Cross-Origin-Resource-Policy: same-origin\r
Permissions-Policy: camera=(), geolocation=(), microphone=()\r
Referrer-Policy: no-referrer\r
X-Content-Type-Options: nosniff\r
X-Frame-Options: DENY\r
";

/// The console.
pub(super) struct Console {
    access: Access,
    feed: Arc<Feed>,
}

impl Console {
    pub(super) fn new(access: Access, feed: Arc<Feed>) -> Self {
        Self { access, feed }
    }

    /// Returns the reply to a request, with the headers of the console.
    pub(super) fn reply(&self, request: &Request) -> Reply {
        match self.answer(request) {
            Reply::Response(response) => Reply::Response(with_headers(response)),
            Reply::Events(response, write) => Reply::Events(with_headers(response), write),
        }
    }

    fn answer(&self, request: &Request) -> Reply {
        if let Err(refusal) = self.access.check_host(request) {
            return refused(&refusal);
        }
        let path = request.path.as_str();
        if path == "/" {
            return self.page(request);
        }
        // A link on another site may lead to the page, but to nothing else.
        if let Err(refusal) = Access::check_site(request) {
            return refused(&refusal);
        }
        if let Some((content_type, text)) = page::file(path) {
            return Reply::Response(Response {
                content_type,
                ..Response::text("200 OK", text)
            });
        }
        if path != "/events" && path != "/state.json" {
            return Reply::Response(Response::text(
                "404 Not Found",
                "not found; the console is at /\n",
            ));
        }
        if let Err(refusal) = self.access.check_token(request) {
            return refused(&refusal);
        }
        if path == "/events" {
            return self.events();
        }
        Reply::Response(Response {
            content_type: "application/json",
            ..Response::text("200 OK", format!("{}\n", self.feed.latest()))
        })
    }

    /// Returns the page, or the form for the token.
    fn page(&self, request: &Request) -> Reply {
        if let Some(cookie) = self.access.log_in(request) {
            // Without the token in the address.
            return Reply::Response(Response {
                headers: format!("Location: /\r\nSet-Cookie: {cookie}\r\n"),
                ..Response::text("303 See Other", "")
            });
        }
        let (status, text) = match self.access.check_token(request) {
            Ok(()) => ("200 OK", page::PAGE),
            Err(Refusal::Token) => ("401 Unauthorized", page::LOGIN),
            Err(refusal) => return refused(&refusal),
        };
        Reply::Response(Response {
            content_type: page::HTML,
            ..Response::text(status, text)
        })
    }

    fn events(&self) -> Reply {
        let Some(place) = self.feed.enter() else {
            return Reply::Response(Response {
                headers: "Retry-After: 5\r\n".to_owned(),
                ..Response::text(
                    "503 Service Unavailable",
                    "too many pages follow this console; close some of them\n",
                )
            });
        };
        let head = Response {
            content_type: "text/event-stream; charset=utf-8",
            ..Response::text("200 OK", "")
        };
        Reply::Events(head, Box::new(move |writer| place.follow(writer)))
    }
}

fn with_headers(response: Response) -> Response {
    Response {
        headers: format!("{HEADERS}{}", response.headers),
        ..response
    }
}

fn refused(refusal: &Refusal) -> Reply {
    Reply::Response(match refusal {
        Refusal::Host(host) => Response::text(
            "421 Misdirected Request",
            format!(
                "this console does not answer for the host '{}': use its IP address or localhost, or start it with --host \
                 NAME\n",
                printable::one_line(host)
            ),
        ),
        Refusal::Site => Response::text(
            "403 Forbidden",
            "this console does not answer pages of other sites\n",
        ),
        Refusal::Proxy(header) => Response::text(
            "403 Forbidden",
            format!(
                "this console has no token and answers this machine only, but a proxy has sent this request for another client, as \
                 its header {header} says: start the console with --token-file FILE\n"
            ),
        ),
        Refusal::Token => Response {
            headers: "WWW-Authenticate: Bearer\r\n".to_owned(),
            ..Response::text(
                "401 Unauthorized",
                "this console needs its token, which it has printed at its start or which is in its --token-file: as \
                 ?token=TOKEN of the page, or as the header 'Authorization: Bearer TOKEN'\n",
            )
        },
    })
}
