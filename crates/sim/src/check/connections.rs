//! No publication is told that nobody receives it for no reason.
//!
//! Input: at each look whether a publication is connected, and who has an image of it that it still reaches, undisturbed: the
//! story knows. Windows that are small, readers that are slow and the weather are no reasons.

use super::{Violation, violation};

/// Holds a publication that is connected no longer against those who read it.
///
/// # Errors
/// Somebody does.
pub fn look(
    was_connected: bool,
    is_connected: bool,
    readers: impl IntoIterator<Item = String>,
) -> Result<(), Violation> {
    if !was_connected || is_connected {
        return Ok(());
    }
    match readers.into_iter().next() {
        Some(reader) => violation!("a connection is lost for no reason: {reader} has an image"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_lost_though_somebody_reads_is_found() {
        let reader = || ["a".to_owned()];
        look(true, true, reader()).unwrap();
        look(false, false, reader()).unwrap();
        look(true, false, []).unwrap();
        let Violation(found) = look(true, false, reader()).unwrap_err();
        assert!(found.contains("a has an image"), "{found}");
    }
}
