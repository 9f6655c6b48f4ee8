// SPDX-License-Identifier: Apache-2.0
//! Records that processes, operations and invariants of one world share.

use std::any::Any;

/// One value of each type. There are few types.
#[derive(Default)]
pub(crate) struct Shared {
    values: Vec<Box<dyn Any>>,
}

impl Shared {
    /// Returns the value of a type, if there is one.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.values.iter().find_map(|value| value.downcast_ref())
    }

    /// Returns the value of a type; creates it if there is none.
    pub(crate) fn get_mut<T: Any + Default>(&mut self) -> &mut T {
        let found = self.values.iter().position(|value| value.is::<T>());
        let index = found.unwrap_or(self.values.len());
        if found.is_none() {
            self.values.push(Box::new(T::default()));
        }
        match self.values[index].downcast_mut() {
            Some(value) => value,
            None => unreachable!("the value at this index has this type"),
        }
    }
}
