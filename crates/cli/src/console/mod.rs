// SPDX-License-Identifier: Apache-2.0
//! `taran console`: a web page that shows drivers, live.
//!
//! One thread takes samples of all drivers with the read-only readers of the other tools and publishes each as JSON
//! ([`feed::Feed`]); each browser follows them as server-sent events. No request changes anything.

mod access;
mod archives;
mod attention;
mod feed;
mod history;
mod members;
mod page;
mod serve;
mod state;
mod token;
mod view;
mod watch;

use std::net::SocketAddr;
use std::path::{self, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::attach::{self, Target};
use crate::failure::Failure;
use crate::http;
use crate::output;
use crate::values;

use access::Access;
use feed::Feed;
use serve::Console;
use token::Token;
use watch::Watches;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
The page shows, for one or several drivers: what needs attention now, with the command that tells more; publishers, streams and
subscribers as a graph; rates, lags, NAKs and losses of each stream over the last minutes, and what limits it; errors; recordings
of archives, and members of clusters, that use these drivers. A driver may start later, end, and be restarted.

  taran console                                      the default driver, at http://127.0.0.1:8080/
  taran console -d /dev/shm/a --also /dev/shm/b      two drivers
  taran console --listen 0.0.0.0:8080                for other machines: prints the address with a token
  ssh -L 8080:127.0.0.1:8080 HOST                    the console of another machine, encrypted, without a token

The console only reads: no command can be given through it. At a loopback address it needs no token, unless --token-file or --host is
given; without a token it refuses what proxies send for others. At any other address each request needs a token; HTTP does not encrypt
it, so prefer ssh, or a proxy with TLS in front. Not every proxy says that it is one (nginx does not by default): behind a proxy
give --token-file. Requests are answered for IP addresses, localhost and the names of --host only, so that a page of another site
cannot reach the console through a name of its own.

Exit status: 1 the address cannot be used, or the token file, 2 incorrect usage; else it runs until a signal ends it.")]
pub(crate) struct Arguments {
    /// Directory of the driver [default: $AERON_DIR, else /dev/shm/aeron-<user>]
    #[arg(short = 'd', long, value_name = "DIR")]
    aeron_dir: Option<PathBuf>,

    /// Directory of another driver to show; may be repeated
    #[arg(long, value_name = "DIR")]
    also: Vec<PathBuf>,

    /// Address of the page; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,

    /// Interval between two samples; a bare number is milliseconds
    #[arg(short = 'u', long, value_name = "TIME", default_value = "1s", value_parser = values::interval)]
    interval: Duration,

    /// File with the token that each request needs: 16 to 128 letters, digits, - and _; only its owner may have access
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Name of this machine by which browsers reach the page, besides its IP addresses and localhost; may be repeated. Each request
    /// then needs a token
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

/// Serves the page until the process ends.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let from_file = match &arguments.token_file {
        Some(file) => Some(Token::read(file)?),
        None => None,
    };
    let listener = http::listen(&arguments.listen)?;
    let local = listener.local_addr()?;
    // A name is for browsers on other machines.
    let is_local = local.ip().is_loopback() && arguments.host.is_empty();
    let is_generated = from_file.is_none() && !is_local;
    let token = match from_file {
        None if is_generated => Some(Token::generate()?),
        from_file => from_file,
    };
    let mut text = format!("listening on http://{local}/\n");
    if let Some(token) = token.as_ref().filter(|_| is_generated) {
        text += &format!(
            "each request needs this token, which is not shown again: http://{}/?token={}\n",
            place(local),
            token.as_str()
        );
    }
    let targets = targets(arguments);
    let feed = Arc::new(Feed::new(targets.len(), arguments.interval));
    let mut watches = Watches::new(targets);
    // The first sample is there before the first request.
    feed.publish(&watches.observe());
    let access = Access::new(
        token,
        Token::generate()?,
        arguments.host.clone(),
        local.port(),
    );
    let console = Console::new(access, Arc::clone(&feed));
    thread::Builder::new()
        .name("console".to_owned())
        .spawn(move || {
            http::serve(&listener, serve::LIMITS, move |request| {
                console.reply(request)
            })
        })?;
    output::text(&text)?;
    let mut next = Instant::now();
    loop {
        next = (next + arguments.interval).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
        feed.publish(&watches.observe());
    }
}

/// Returns address and port for the address line of a browser.
fn place(local: SocketAddr) -> String {
    if local.ip().is_unspecified() {
        // The machine may have several, and any of them serves.
        format!("<address of this machine>:{}", local.port())
    } else {
        local.to_string()
    }
}

/// Returns the drivers to show, each once, whatever its directory is called. None of them is waited for.
fn targets(arguments: &Arguments) -> Vec<Target> {
    let also = arguments.also.iter().cloned().map(Some);
    let target = |aeron_dir| Target {
        aeron_dir,
        timeout: Duration::ZERO,
    };
    let mut known = Vec::new();
    std::iter::once(arguments.aeron_dir.clone())
        .chain(also)
        .map(target)
        .filter(|target| {
            let Ok(directory) = attach::directory(target) else {
                return true;
            };
            // A directory that does not exist yet has no other name.
            let directory = directory
                .canonicalize()
                .or_else(|_| path::absolute(&directory))
                .unwrap_or(directory);
            let is_new = !known.contains(&directory);
            known.push(directory);
            is_new
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_all_addresses_names_none() {
        for (local, expected) in [
            ("192.0.2.7:8080", "192.0.2.7:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("0.0.0.0:8080", "<address of this machine>:8080"),
            ("[::]:8080", "<address of this machine>:8080"),
        ] {
            assert_eq!(place(local.parse().unwrap()), expected);
        }
    }
}
