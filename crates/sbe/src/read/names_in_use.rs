// SPDX-License-Identifier: Apache-2.0
//! Detection of duplicate names and numbers.

use std::collections::HashMap;

use crate::model::Position;
use crate::problem::{Problem, Problems};

/// Names or numbers in use, with their first positions.
#[derive(Default)]
pub(super) struct NamesInUse(HashMap<String, Position>);

impl NamesInUse {
    /// Adds a name; reports a problem and returns false if it is already in use.
    pub(super) fn add(
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
