//! The archive client of this project on the official archive.

mod fixture;
mod live;
mod requests;
mod sessions;
