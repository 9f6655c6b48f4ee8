//! One module per target: `run` takes an input and panics if an invariant is violated.

pub mod broadcast;
pub mod cnc;
pub mod commands;
pub mod counters;
pub mod error_log;
pub mod fix_dictionary;
pub mod fix_messages;
pub mod fix_session;
pub mod frames;
pub mod gossip;
pub mod image_log;
pub mod loss_report;
pub mod name_table;
pub mod options;
pub mod publisher_log;
pub mod reader_log;
pub mod receive_endpoints;
pub mod sbe_codecs;
pub mod sbe_decode;
pub mod sbe_schema;
pub mod secure_frames;
pub mod secure_keeper;
pub mod secure_texts;
pub mod send_endpoints;
pub mod uri;
