//! An Aeron archive (`docs/spec/archive.md`): records streams to disk and replays them.
//!
//! * [`files`] is what an archive keeps on disk: catalog, segment files, mark file, and the tools for a stopped archive.

#![forbid(unsafe_code)]

pub mod files;
