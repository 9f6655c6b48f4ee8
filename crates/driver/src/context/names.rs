// SPDX-License-Identifier: Apache-2.0
//! Settings of name resolution (docs/spec/uri-and-configuration.md §2.9).

use taran_protocol::option::{OptionId, OptionSet};
use taran_protocol::uri::Address;

use super::validate::Conflict;

/// Maximum bootstrap neighbors.
const BOOTSTRAP_MAX: usize = 20;

/// Sources of names that are consulted before the operating system.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NameSettings {
    /// The driver's own name, published in the label of a counter.
    pub driver_name: Option<String>,
    /// Rows of `csv_table`; empty without it.
    pub table: Vec<TableRow>,
    /// Driver-to-driver name resolution (gossip), if enabled.
    pub gossip: Option<GossipSettings>,
}

/// A name and its replacements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableRow {
    /// The name.
    pub name: String,
    /// The host that it initially stands for.
    pub first: String,
    /// The host that it stands for after re-resolution, when its counter says so.
    pub other: String,
}

/// Settings of driver-to-driver name resolution (docs/spec/wire.md §6).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GossipSettings {
    /// This driver's name.
    pub name: String,
    /// Address to which the resolver's socket is bound.
    pub interface: Address,
    /// Bootstrap neighbors as configured. Malformed ones are reported when they are looked up, because others may be
    /// valid.
    pub bootstrap: Vec<String>,
    /// Time without input after which a neighbor is removed.
    pub neighbor_timeout_ns: i64,
    /// Interval at which the driver announces itself.
    pub self_interval_ns: i64,
    /// Interval at which it announces its neighbors.
    pub neighbor_interval_ns: i64,
    /// Interval at which bootstrap neighbors are resolved again.
    pub bootstrap_interval_ns: i64,
    /// Maximum frame length in bytes.
    pub mtu: usize,
}

impl NameSettings {
    /// Reads the options; conflicts are checked separately.
    pub(super) fn from_options(options: &OptionSet) -> Self {
        Self {
            driver_name: options.resolver_name().map(str::to_owned),
            table: table(options).unwrap_or_default(),
            gossip: gossip(options).ok().flatten(),
        }
    }
}

/// Returns the conflicts and missing values among these options.
pub(super) fn conflicts(options: &OptionSet) -> Vec<Conflict> {
    let table = table(options).err();
    let gossip = gossip(options).err();
    table.into_iter().chain(gossip).collect()
}

fn conflict(options: &OptionSet, option: OptionId, needed: impl Into<String>) -> Conflict {
    Conflict {
        option,
        value: options.text(option),
        needed: needed.into(),
    }
}

/// Parses the rows of `csv_table`. Rows that do not have three columns are ignored, as by the official driver.
fn table(options: &OptionSet) -> Result<Vec<TableRow>, Conflict> {
    if options.name_resolver_supplier() != "csv_table" {
        return Ok(Vec::new());
    }
    let rows = options.name_resolver_init_args().ok_or_else(|| {
        conflict(
            options,
            OptionId::NameResolverInitArgs,
            "must be given with aeron.name.resolver.supplier=csv_table: rows of \
             'name,first address,address at re-resolution', separated by '|'",
        )
    })?;
    let rows = rows.split('|').filter_map(|row| {
        let columns: Vec<&str> = row.split(',').collect();
        let [name, first, other] = *columns.as_slice() else {
            return None;
        };
        Some(TableRow {
            name: name.to_owned(),
            first: first.to_owned(),
            other: other.to_owned(),
        })
    });
    Ok(rows.collect())
}

/// Gossip is enabled by the supplier, as in the C driver, or by the interface alone, as in the Java driver.
fn gossip(options: &OptionSet) -> Result<Option<GossipSettings>, Conflict> {
    let Some(interface) = options.resolver_interface() else {
        if options.name_resolver_supplier() == "driver" {
            return Err(conflict(
                options,
                OptionId::ResolverInterface,
                "must be host:port with aeron.name.resolver.supplier=driver",
            ));
        }
        return Ok(None);
    };
    let name = options.resolver_name().ok_or_else(|| {
        conflict(
            options,
            OptionId::ResolverName,
            "must be given with aeron.driver.resolver.interface: `resolverName` is required when `resolverInterface` is set",
        )
    })?;
    // The limit is what fits into a frame with its header and the fixed part of the entry.
    if name.len() > 512.min(options.mtu_length().saturating_sub(40)) {
        return Err(conflict(
            options,
            OptionId::ResolverName,
            "is too long: the limit is 512 bytes, and what fits into a frame of aeron.mtu.length bytes",
        ));
    }
    let interface = Address::parse(interface.trim()).map_err(|needed| {
        let text = format!("must be {needed}");
        conflict(options, OptionId::ResolverInterface, text)
    })?;
    let starts: Vec<&str> = options
        .resolver_bootstrap_neighbor()
        .map_or(Vec::new(), |list| list.split(',').collect());
    if starts.len() > BOOTSTRAP_MAX {
        return Err(conflict(
            options,
            OptionId::ResolverBootstrapNeighbor,
            format!("names more than {BOOTSTRAP_MAX} drivers"),
        ));
    }
    Ok(Some(GossipSettings {
        name: name.to_owned(),
        interface,
        bootstrap: starts
            .into_iter()
            .map(|start| start.trim().to_owned())
            .collect(),
        neighbor_timeout_ns: options.resolver_neighbor_timeout_ns(),
        self_interval_ns: options.resolver_self_resolution_interval_ns(),
        neighbor_interval_ns: options.resolver_neighbor_resolution_interval_ns(),
        bootstrap_interval_ns: options.resolver_bootstrap_neighbor_resolution_interval_ns(),
        mtu: options.mtu_length(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use taran_protocol::option::Source;

    use super::*;

    fn options(set: &[(&str, &str)]) -> OptionSet {
        let mut options = OptionSet::driver();
        let unknown = options.apply(&Source::Code, set.iter().copied()).unwrap();
        assert!(unknown.is_empty());
        options
    }

    #[test]
    fn defaults_have_neither_table_nor_gossip() {
        let names = NameSettings::from_options(&options(&[("aeron.driver.resolver.name", "A")]));
        assert!(names.table.is_empty() && names.gossip.is_none());
        assert_eq!(names.driver_name.as_deref(), Some("A"));
    }

    #[test]
    fn table_ignores_rows_without_three_columns() {
        let names = NameSettings::from_options(&options(&[
            ("AERON_NAME_RESOLVER_SUPPLIER", "csv_table"),
            (
                "AERON_NAME_RESOLVER_INIT_ARGS",
                "a,127.0.0.1,127.0.0.2|b,x|c,localhost,bad.invalid|",
            ),
        ]));
        let rows: Vec<(&str, &str, &str)> = names
            .table
            .iter()
            .map(|row| (&*row.name, &*row.first, &*row.other))
            .collect();
        assert_eq!(
            rows,
            [
                ("a", "127.0.0.1", "127.0.0.2"),
                ("c", "localhost", "bad.invalid")
            ]
        );
    }

    proptest! {
        #[test]
        fn arbitrary_table_yields_its_valid_rows(table in "([a-z0-9.:\\PC]{0,6}[,|]){0,12}") {
            let names = NameSettings::from_options(&options(&[
                ("AERON_NAME_RESOLVER_SUPPLIER", "csv_table"),
                ("AERON_NAME_RESOLVER_INIT_ARGS", &table),
            ]));
            let rows: Vec<String> = names
                .table
                .iter()
                .map(|row| format!("{},{},{}", row.name, row.first, row.other))
                .collect();
            let meant: Vec<&str> = table
                .split('|')
                .filter(|row| !table.is_empty() && row.matches(',').count() == 2)
                .collect();
            prop_assert_eq!(rows, meant);
        }
    }

    #[test]
    fn interface_enables_gossip() {
        let names = NameSettings::from_options(&options(&[
            ("aeron.driver.resolver.name", "A"),
            ("aeron.driver.resolver.interface", "0.0.0.0:8050"),
            (
                "aeron.driver.resolver.bootstrap.neighbor",
                "localhost:8051,[::1]:8052",
            ),
        ]));
        let gossip = names.gossip.unwrap();
        assert_eq!((gossip.interface.port, gossip.bootstrap.len()), (8050, 2));
        assert_eq!(
            (gossip.self_interval_ns, gossip.neighbor_interval_ns),
            (1_000_000_000, 2_000_000_000)
        );
        assert_eq!(
            (gossip.bootstrap_interval_ns, gossip.neighbor_timeout_ns),
            (10_000_000_000, 10_000_000_000)
        );
    }

    #[test]
    fn missing_values_are_reported() {
        let many = vec!["localhost:1"; 21].join(",");
        let interface = ("aeron.driver.resolver.interface", "localhost:0");
        let name = ("aeron.driver.resolver.name", "A");
        for (set, part) in [
            (
                vec![("aeron.name.resolver.supplier", "csv_table")],
                "init.args",
            ),
            (
                vec![("aeron.name.resolver.supplier", "driver")],
                "resolver.interface",
            ),
            (vec![interface], "resolver.name"),
            (
                vec![name, ("aeron.driver.resolver.interface", "localhost")],
                "port",
            ),
            (
                vec![
                    name,
                    interface,
                    ("aeron.driver.resolver.bootstrap.neighbor", many.as_str()),
                ],
                "20",
            ),
        ] {
            let found = conflicts(&options(&set));
            assert_eq!(found.len(), 1, "{set:?}");
            assert!(found[0].to_string().contains(part), "{}", found[0]);
        }
    }
}
