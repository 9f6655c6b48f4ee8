//! Places in Rust where each name is used once, and what becomes of the second that would have it.

use std::collections::HashMap;

use crate::model::Position;
use crate::problem::{Problem, Problems, Renamed};

/// What something is called in the schema, and where.
pub(super) type Thing<'a> = (&'a str, &'a Position);

/// The names that are taken in one place.
///
/// Whoever comes first keeps its name, and each one after it gets the first number that is free behind it: `order_id`,
/// `order_id_2`. So names stay what they are while more of the same kind is added at the end of a schema.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    taken: HashMap<String, Thing<'a>>,
    /// The number that each name was given last.
    numbers: HashMap<String, u32>,
    separator: &'static str,
}

impl<'a> Scope<'a> {
    /// For `names_like_this`, or `LIKE_THIS`.
    pub(super) fn of_words() -> Self {
        Self::with("_")
    }

    /// For `NamesLikeThis`.
    pub(super) fn of_types() -> Self {
        Self::with("")
    }

    fn with(separator: &'static str) -> Self {
        Self {
            taken: HashMap::new(),
            numbers: HashMap::new(),
            separator,
        }
    }

    /// Takes a name for a thing, and gives the one that it gets.
    pub(super) fn take(
        &mut self,
        wanted: String,
        thing: Thing<'a>,
        problems: &mut Problems,
    ) -> String {
        self.take_all(wanted, &[""], thing, problems)
    }

    /// Takes a name with each of these endings, and gives what stands before them.
    pub(super) fn take_all(
        &mut self,
        wanted: String,
        endings: &[&str],
        (name, position): Thing<'a>,
        problems: &mut Problems,
    ) -> String {
        let is_taken = |scope: &Self, stem: &str| {
            let mut all = endings.iter().map(|ending| format!("{stem}{ending}"));
            all.find_map(|each| scope.taken.get(&each).copied())
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
            self.taken
                .insert(format!("{given}{ending}"), (name, position));
        }
        given
    }

    fn numbered(&mut self, wanted: &str, is_free: impl Fn(&Self, &str) -> bool) -> String {
        let stem = wanted.trim_end_matches('_');
        // `Level12` would be another one than the second `Level1`.
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
