//! The media driver: conductor, sender and receiver.

#![forbid(unsafe_code)]
