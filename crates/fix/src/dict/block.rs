// SPDX-License-Identifier: Apache-2.0
//! Members of a message, header, trailer or group entry.

/// Member: a field, or a group behind its count field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub(super) tag: u32,
    pub(super) required: bool,
    pub(super) group: Option<Block>,
}

impl Member {
    /// Returns the tag of the field, or of the count of a group.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns true if a message or entry without it is invalid.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.required
    }

    /// Returns the members of each entry if this is a group.
    #[must_use]
    pub const fn group(&self) -> Option<&Block> {
        self.group.as_ref()
    }
}

/// Members in the order of the dictionary, with components resolved. Each tag occurs once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    members: Vec<Member>,
    /// Tag and index of each member, by tag.
    index: Vec<(u32, u32)>,
}

impl Block {
    /// Returns a block of these members, or the first tag that occurs twice.
    pub(super) fn new(members: Vec<Member>) -> Result<Self, u32> {
        // Dictionaries are bounded to far less than 2^32 elements.
        let mut index: Vec<(u32, u32)> = (0u32..)
            .zip(&members)
            .map(|(position, member)| (member.tag, position))
            .collect();
        index.sort_unstable();
        match index.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pair[0].0),
            None => Ok(Self { members, index }),
        }
    }

    /// Returns the members in order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the position of the member with this tag.
    #[must_use]
    pub fn position(&self, tag: u32) -> Option<usize> {
        let found = self
            .index
            .binary_search_by_key(&tag, |entry| entry.0)
            .ok()?;
        usize::try_from(self.index[found].1).ok()
    }

    /// Returns the member with this tag.
    #[must_use]
    pub fn get(&self, tag: u32) -> Option<&Member> {
        self.position(tag).map(|position| &self.members[position])
    }

    /// Returns the tag of the first member, which begins each entry of a group.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.members.first().map(|member| member.tag)
    }
}
