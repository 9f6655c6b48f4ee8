// SPDX-License-Identifier: Apache-2.0
//! Work items of an agent, whose slots are part of the tokens of their disk requests.

/// Items in slots that are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    items: Vec<Option<T>>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// Adds an item, which `create` makes with its slot.
    pub(crate) fn add(&mut self, create: impl FnOnce(usize) -> T) {
        let unused = self.items.iter().position(Option::is_none);
        let slot = unused.unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() - 1
        });
        self.items[slot] = Some(create(slot));
    }

    /// Returns the number of slots, in use or not.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.iter().all(Option::is_none)
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.items.get_mut(slot)?.as_mut()
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<T> {
        self.items.get_mut(slot)?.take()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_of_a_removed_item_is_used_again() {
        let mut slots = Slots::new();
        for _ in 0..3 {
            slots.add(|slot| slot * 10);
        }
        assert_eq!(slots.remove(1), Some(10));
        assert_eq!(slots.remove(1), None);
        slots.add(|slot| slot * 100);
        assert_eq!(
            slots.iter_mut().map(|item| *item).collect::<Vec<_>>(),
            [0, 100, 20]
        );
        assert_eq!((slots.len(), slots.is_empty()), (3, false));
        assert_eq!(slots.get_mut(2), Some(&mut 20));
        assert_eq!(slots.get_mut(3), None);
    }
}
