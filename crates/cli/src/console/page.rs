// SPDX-License-Identifier: Apache-2.0
//! The files of the page. They are parts of this program, so the page needs nothing from elsewhere.

/// Content type of pages.
pub(super) const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The console.
pub(super) const PAGE: &str = include_str!("page/console.html");
/// The form for the token.
pub(super) const LOGIN: &str = include_str!("page/login.html");

macro_rules! files {
    ($($path:literal: $content_type:expr;)*) => {
        /// Returns content type and text of a file. They are the same for every console, so they need no token.
        pub(super) fn file(path: &str) -> Option<(&'static str, &'static str)> {
            match path {
                $(concat!("/", $path) => Some(($content_type, include_str!(concat!("page/", $path)))),)*
                _ => None,
            }
        }
    };
}

files! {
    "console.css": "text/css; charset=utf-8";
    "icon.svg": "image/svg+xml";
    "charts.js": SCRIPT;
    "console.js": SCRIPT;
    "dom.js": SCRIPT;
    "feed.js": SCRIPT;
    "format.js": SCRIPT;
    "graph.js": SCRIPT;
    "keys.js": SCRIPT;
    "model.js": SCRIPT;
    "panels.js": SCRIPT;
    "streams.js": SCRIPT;
}
