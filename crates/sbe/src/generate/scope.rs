// SPDX-License-Identifier: Apache-2.0
//! Scopes of Rust names, with resolution of conflicts.

use std::collections::HashMap;

use crate::model::Position;
use crate::problem::{Problem, Problems, Renamed};

/// Schema name and position of an element.
pub(super) type Thing<'a> = (&'a str, &'a Position);

/// Names used in one Rust scope.
///
/// The first element keeps its name; each later one with the same name gets the first free numeric suffix: `order_id`,
/// `order_id_2`. Appending elements to a schema therefore does not change existing names.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    elements: HashMap<String, Thing<'a>>,
    /// Last suffix used for each name.
    numbers: HashMap<String, u32>,
    separator: &'static str,
}

impl<'a> Scope<'a> {
    /// Returns a scope for `snake_case` or `UPPER_CASE` names.
    pub(super) fn of_words() -> Self {
        Self::with("_")
    }

    /// Returns a scope for `CamelCase` names.
    pub(super) fn of_types() -> Self {
        Self::with("")
    }

    fn with(separator: &'static str) -> Self {
        Self {
            elements: HashMap::new(),
            numbers: HashMap::new(),
            separator,
        }
    }

    /// Reserves a name for an element and returns the name it gets.
    pub(super) fn take(
        &mut self,
        wanted: String,
        thing: Thing<'a>,
        problems: &mut Problems,
    ) -> String {
        self.take_all(wanted, &[""], thing, problems)
    }

    /// Reserves a name with each of these suffixes and returns the common stem.
    pub(super) fn take_all(
        &mut self,
        wanted: String,
        endings: &[&str],
        (name, position): Thing<'a>,
        problems: &mut Problems,
    ) -> String {
        let is_taken = |scope: &Self, stem: &str| {
            let mut all = endings.iter().map(|ending| format!("{stem}{ending}"));
            all.find_map(|each| scope.elements.get(&each).copied())
        };
        let given = match is_taken(self, &wanted) {
            None => wanted,
            Some((first, first_position)) => {
                let given = self.numbered(&wanted, |scope, stem| is_taken(scope, stem).is_none());
                let renamed = Renamed {
                    name: name.to_owned(),
                    wanted,
                    given: given.clone(),
                    first: first.to_owned(),
                    first_position: first_position.clone(),
                };
                problems.add(position, Problem::Renamed(Box::new(renamed)));
                given
            }
        };
        for ending in endings {
            self.elements
                .insert(format!("{given}{ending}"), (name, position));
        }
        given
    }

    fn numbered(&mut self, wanted: &str, is_free: impl Fn(&Self, &str) -> bool) -> String {
        let stem = wanted.trim_end_matches('_');
        // Separates the suffix: `Level12` would differ from the second `Level1`.
        let separator = if stem.ends_with(|last: char| last.is_ascii_digit()) {
            "_"
        } else {
            self.separator
        };
        let mut number = self.numbers.get(stem).copied().unwrap_or(1);
        loop {
            number += 1;
            let given = format!("{stem}{separator}{number}");
            if is_free(self, &given) {
                self.numbers.insert(stem.to_owned(), number);
                return given;
            }
        }
    }
}
