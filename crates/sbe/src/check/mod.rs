//! The rules of the standard that only a whole model can be held to.

mod fits;
mod values;
mod versions;

use std::collections::HashMap;

use crate::model::Schema;
use crate::problem::{Problem, Problems};

/// Tells everything that is wrong with a schema beyond what its parts alone show.
pub(crate) fn schema(schema: &Schema, problems: &mut Problems) {
    messages(schema, problems);
    fits::schema(schema, problems);
    values::schema(schema, problems);
    versions::schema(schema, problems);
}

/// No two messages have the same name or id.
fn messages(schema: &Schema, problems: &mut Problems) {
    let mut names = HashMap::new();
    let mut ids = HashMap::new();
    for message in &schema.messages {
        if let Some(first) = names.insert(&message.name, &message.position) {
            let problem = Problem::Duplicate {
                what: "message",
                name: message.name.clone(),
                first: first.clone(),
            };
            problems.add(&message.position, problem);
        }
        if let Some(first) = ids.insert(message.id, &message.position) {
            let problem = Problem::Duplicate {
                what: "message id",
                name: message.id.to_string(),
                first: first.clone(),
            };
            problems.add(&message.position, problem);
        }
    }
}
