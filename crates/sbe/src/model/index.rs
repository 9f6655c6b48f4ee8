// SPDX-License-Identifier: Apache-2.0
//! Lookup index for lists that keep their own order.

/// Positions of the list elements, sorted by key.
///
/// Schemas can be untrusted: with linear search per lookup, a schema of a few megabytes would take minutes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index(Vec<u32>);

impl Index {
    /// Builds an index of `things` by `key`. Of several elements with the same key, the first one is found.
    pub(crate) fn of<'a, Thing, Key: Ord>(
        things: &'a [Thing],
        key: impl Fn(&'a Thing) -> Key,
    ) -> Self {
        // The number of elements fits: it is less than the bytes of a file.
        let mut places: Vec<u32> = (0..).take(things.len()).collect();
        // The sort is stable.
        places.sort_by_key(|place| things.get(*place as usize).map(&key));
        Self(places)
    }

    /// Returns the element with this key.
    pub(crate) fn find<'a, Thing, Key: Ord>(
        &self,
        things: &'a [Thing],
        wanted: &Key,
        key: impl Fn(&'a Thing) -> Key,
    ) -> Option<&'a Thing> {
        let at = |place: &u32| things.get(*place as usize);
        let first = self
            .0
            .partition_point(|place| at(place).is_some_and(|thing| key(thing) < *wanted));
        let found = at(self.0.get(first)?)?;
        (key(found) == *wanted).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_returns_first_element_with_key() {
        let things = [(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd')];
        let index = Index::of(&things, |thing| thing.0);
        let find = |key: i32| {
            index
                .find(&things, &key, |thing| thing.0)
                .map(|thing| thing.1)
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(find),
            [None, Some('b'), Some('d'), Some('a'), None]
        );
        let none: [(i32, char); 0] = [];
        assert_eq!(
            Index::of(&none, |thing| thing.0).find(&none, &1, |thing| thing.0),
            None
        );
        assert_eq!(index.find(&none, &1, |thing| thing.0), None);
    }
}
