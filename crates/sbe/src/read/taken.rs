//! Names and numbers that are in use.

use std::collections::HashMap;

use crate::model::Position;
use crate::problem::{Problem, Problems};

/// What is in use, and where it was first.
#[derive(Default)]
pub(super) struct Taken(HashMap<String, Position>);

impl Taken {
    /// Takes a name; a problem, and `false`, where somebody has it already.
    pub(super) fn take(
        &mut self,
        what: &'static str,
        name: &str,
        position: &Position,
        problems: &mut Problems,
    ) -> bool {
        let Some(first) = self.0.get(name) else {
            self.0.insert(name.to_owned(), position.clone());
            return true;
        };
        let problem = Problem::Duplicate {
            what,
            name: name.to_owned(),
            first: first.clone(),
        };
        problems.add(position, problem);
        false
    }
}
