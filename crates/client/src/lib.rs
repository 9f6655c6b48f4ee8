//! Low-latency messaging that speaks Aeron: the client library.

#![forbid(unsafe_code)]
