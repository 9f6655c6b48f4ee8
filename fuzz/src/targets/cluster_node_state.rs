// SPDX-License-Identifier: Apache-2.0
//! The node state file of a member.

use taran_cluster::files::{NODE_STATE_FILE_LENGTH, NodeState};

/// Reads a file as a member does at its start. What was read is the same when it is written again, as a whole and as a change.
pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut padded = bytes.to_vec();
    padded.resize(NODE_STATE_FILE_LENGTH, 0);
    read(&padded);
}

fn read(bytes: &[u8]) {
    let (state, at) = match NodeState::decode_with_offset(bytes) {
        Ok(found) => found,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut whole = vec![0; NODE_STATE_FILE_LENGTH];
    let encoded = state.encode();
    whole[..encoded.len()].copy_from_slice(&encoded);
    assert_eq!(NodeState::decode(&whole).as_ref(), Ok(&state));
    // A change of the term in the file that was read.
    let mut changed = state;
    changed.candidate_term = changed.candidate_term.wrapping_add(1);
    let (mut file, block) = (bytes.to_vec(), changed.block());
    file[at..at + block.len()].copy_from_slice(&block);
    assert_eq!(NodeState::decode(&file), Ok(changed));
}
