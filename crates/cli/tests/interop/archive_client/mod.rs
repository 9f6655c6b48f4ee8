//! The archive client of this project on the official archive.

pub(crate) mod fixture;
mod live;
mod requests;
mod sessions;
