// SPDX-License-Identifier: Apache-2.0
//! The table of `csv_table`.

use std::cell::RefCell;

use taran_driver::context::{Settings, validate};
use taran_protocol::option::{OptionId, OptionSet, Source};

thread_local! {
    /// Created once: the other options keep their values.
    static OPTIONS: RefCell<OptionSet> = {
        let mut options = OptionSet::driver();
        let supplier = options.set(OptionId::NameResolverSupplier, "csv_table", &Source::Code);
        assert!(supplier.is_ok());
        RefCell::new(options)
    };
}

/// Parses a table.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    OPTIONS.with_borrow_mut(|options| read(options, text));
}

fn read(options: &mut OptionSet, text: &str) {
    if options
        .set(OptionId::NameResolverInitArgs, text, &Source::Code)
        .is_err()
    {
        return;
    }
    let conflicts = validate(options);
    assert_eq!(conflicts.is_empty(), !text.is_empty());
    if !conflicts.is_empty() {
        return;
    }
    let rows = Settings::from_options(options).names.table;
    let printed: Vec<String> = rows
        .iter()
        .map(|row| format!("{},{},{}", row.name, row.first, row.other))
        .collect();
    // The rows are those of the text, in order; only rows without three columns are skipped.
    let meant: Vec<&str> = text
        .split('|')
        .filter(|row| row.matches(',').count() == 2)
        .collect();
    assert_eq!(printed, meant);
}
