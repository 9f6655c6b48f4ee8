//! Layouts, positions, channel URIs and vocabularies of the Aeron protocol.

#![forbid(unsafe_code)]
