// SPDX-License-Identifier: Apache-2.0
//! Option names: correspondence of properties and variables, and suggestions for unknown names.

use super::layers::Source;
use super::spec::{OptionSpec, Scope};
use super::table::OptionId;

/// Unknown option name: with an Aeron or Taran prefix, or any from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOption {
    /// Name as given.
    pub name: String,
    /// Source of the name.
    pub source: Source,
    /// Most similar known name, if one is similar enough.
    pub nearest: Option<&'static str>,
}

impl UnknownOption {
    /// Returns true if the name is almost certainly a mistake: it resembles a known one, or was given on the command line
    /// of this process. Environment and property files also hold names that belong to other programs.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        self.nearest.is_some() || self.source == Source::CommandLine
    }
}

impl std::fmt::Display for UnknownOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown option {} ({})", self.name, self.source)?;
        match self.nearest {
            Some(nearest) => write!(f, ", did you mean {nearest}?"),
            None => Ok(()),
        }
    }
}

/// Maximum edit distance between an unknown name and a suggestion.
const MAX_EDITS: usize = 3;
/// As above for environment variables, which are shared by many programs.
const MAX_EDITS_IN_ENVIRONMENT: usize = 2;
/// Minimum length of environment variables for suggestions, because short names are similar to many others.
const MIN_LENGTH_IN_ENVIRONMENT: usize = 14;

/// Prefix of the variables of an archive.
const ARCHIVE_PREFIX: &str = "AERON_ARCHIVE_";

/// Prefix of the variables of a cluster.
const CLUSTER_PREFIX: &str = "AERON_CLUSTER_";

/// Prefixes of variables that belong to other components, tools and builds.
const FOREIGN_PREFIXES: &[&str] = &[
    "AERON_AGENT_",
    ARCHIVE_PREFIX,
    "AERON_ATS_",
    "AERON_BUILD",
    CLUSTER_PREFIX,
    "AERON_CLUSTERED_",
    "AERON_CLUSTER_BACKUP_",
    "AERON_CLUSTER_CONSENSUS_ENDPOINTS",
    "AERON_DEBUG_",
    "AERON_DPDK_",
    "AERON_EF_VI_",
    "AERON_EVENT_ARCHIVE_",
    "AERON_EVENT_CLUSTER_",
    "AERON_LOG_INSPECTOR_",
    "AERON_SAMPLE",
    "AERON_SEQUENCER_",
    "AERON_SPY_",
    "AERON_STANDBY_",
    "AERON_SYSTEM_TEST",
    "AERON_TEST_",
    "AERON_TRANSPORT_SECURITY_",
    "AERON_UNITTEST_",
    "AERON_VMA_",
    "TARAN_REQUIRE_",
    "TARAN_TEST_",
];

/// Prefixes of system properties of a Java virtual machine and its libraries, which command lines for Java programs hold.
const JAVA_PREFIXES: &[&str] = &["AGRONA_", "FILE_", "JAVA_", "JDK_", "OS_", "SUN_", "USER_"];

/// Prefixes of options, in the order in which a name without one is completed.
const OPTION_PREFIXES: [&str; 2] = ["aeron.", "taran."];

/// Returns a byte of a name in the form used for comparison, that of environment variables.
fn normalize(byte: u8) -> u8 {
    if byte == b'.' {
        b'_'
    } else {
        byte.to_ascii_uppercase()
    }
}

/// Returns true if two names are equal, as a property or as a variable.
pub(super) fn is_same_name(a: &str, b: &str) -> bool {
    a.len() == b.len() && has_prefix(a, b)
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    let (name, prefix) = (name.as_bytes(), prefix.as_bytes());
    name.len() >= prefix.len()
        && name
            .iter()
            .zip(prefix)
            .all(|(a, b)| normalize(*a) == normalize(*b))
}

/// Returns the option with this name: a property, its official variable, or the variable derived from the property
/// (upper case, `.` becomes `_`).
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    OptionId::ALL
        .iter()
        .find(|spec| is_same_name(spec.variable, name) || is_same_name(spec.property, name))
}

/// Returns the option with this property or environment variable name.
#[must_use]
pub fn find_option(name: &str) -> Option<&'static OptionSpec> {
    find(name)
}

/// Returns the property name most similar to an unknown name, with or without its prefix, if one is similar enough.
#[must_use]
pub fn nearest_option(name: &str) -> Option<&'static str> {
    nearest(name, MAX_EDITS, |spec| spec.property).or_else(|| {
        // The prefix is known, so that fewer letters remain to resemble another name.
        let max_edits = (name.len() / 4).min(MAX_EDITS);
        OPTION_PREFIXES
            .iter()
            .find_map(|prefix| nearest(&format!("{prefix}{name}"), max_edits, |spec| spec.property))
    })
}

/// Returns the options whose property or variable contains each word of a text, in documentation order. Words are
/// separated by anything but letters and digits. None for a text without a word.
#[must_use]
pub fn search_options(text: &str) -> Vec<&'static OptionSpec> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase)
        .collect();
    if words.is_empty() {
        return Vec::new();
    }
    let contains_all = |name: &str| {
        let name = name.to_ascii_uppercase();
        words.iter().all(|word| name.contains(word.as_str()))
    };
    OptionId::ALL
        .iter()
        .filter(|spec| contains_all(spec.property) || contains_all(spec.variable))
        .collect()
}

/// Returns the `name_of` an option that is most similar to `name`, within `max_edits` edits.
fn nearest(
    name: &str,
    max_edits: usize,
    name_of: fn(&'static OptionSpec) -> &'static str,
) -> Option<&'static str> {
    let known = OptionId::ALL.iter().map(name_of);
    known
        .filter_map(|known| Some((distance(name, known)?, known)))
        .filter(|(edits, _)| *edits <= max_edits)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}

/// Returns true if an unknown name has an Aeron or Taran prefix and belongs to no other component.
fn is_in_namespace(name: &str, scope: Scope) -> bool {
    let own = match scope {
        Scope::Archive => ARCHIVE_PREFIX,
        Scope::Cluster | Scope::Container | Scope::ClusterClient => CLUSTER_PREFIX,
        _ => "",
    };
    (has_prefix(name, "AERON_") || has_prefix(name, "TARAN_"))
        && !FOREIGN_PREFIXES
            .iter()
            .filter(|prefix| **prefix != own)
            .any(|prefix| has_prefix(name, prefix))
}

/// Returns true if a name has no prefix of Aeron or Taran, and is no system property of Java.
fn is_without_prefix(name: &str) -> bool {
    !["AERON_", "TARAN_"]
        .iter()
        .chain(JAVA_PREFIXES)
        .any(|prefix| has_prefix(name, prefix))
}

/// Returns a report for a name that [`find`] does not know, or `None` if the name belongs to another program. The command
/// line belongs to this one, so that there each name without a prefix is reported, too.
pub(super) fn unknown(name: &str, source: &Source, scope: Scope) -> Option<UnknownOption> {
    if *source == Source::CommandLine && is_without_prefix(name) {
        return Some(UnknownOption {
            name: name.to_owned(),
            source: source.clone(),
            nearest: nearest_option(name),
        });
    }
    if !is_in_namespace(name, scope) {
        return None;
    }
    let environment = *source == Source::Environment;
    let nearest = if environment {
        nearest(name, MAX_EDITS_IN_ENVIRONMENT, |spec| spec.variable)
    } else {
        nearest(name, MAX_EDITS, |spec| spec.property)
    };
    if environment && (nearest.is_none() || name.len() < MIN_LENGTH_IN_ENVIRONMENT) {
        return None;
    }
    Some(UnknownOption {
        name: name.to_owned(),
        source: source.clone(),
        nearest,
    })
}

/// Returns the edit distance of two names (insertions, deletions, replacements and swaps of adjacent bytes), if it is
/// at most [`MAX_EDITS`].
///
/// A file may hold thousands of unknown names, each of which is compared with all options. Only cells within
/// [`MAX_EDITS`] of the diagonal are computed, up to the first row in which all cells exceed it.
pub(crate) fn distance(a: &str, b: &str) -> Option<usize> {
    const WIDTH: usize = 2 * MAX_EDITS + 1;
    const FAR: usize = MAX_EDITS + 1;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > MAX_EDITS {
        return None;
    }
    // In row `i`, the cell for the first `j` bytes of `b` is at index `j + MAX_EDITS - i`.
    let mut before_last = [FAR; WIDTH];
    let mut last: [usize; WIDTH] = std::array::from_fn(|at| match at.checked_sub(MAX_EDITS) {
        Some(j) => j,
        None => FAR,
    });
    for i in 1..=a.len() {
        let mut row = [FAR; WIDTH];
        for at in 0..WIDTH {
            let Some(j) = (i + at).checked_sub(MAX_EDITS) else {
                continue;
            };
            if j > b.len() {
                break;
            }
            if j == 0 {
                row[at] = i.min(FAR);
                continue;
            }
            let (x, y) = (normalize(a[i - 1]), normalize(b[j - 1]));
            let mut edits = last[at] + usize::from(x != y);
            if let Some(without_x) = last.get(at + 1) {
                edits = edits.min(without_x + 1);
            }
            if at > 0 {
                edits = edits.min(row[at - 1] + 1);
            }
            if i > 1 && j > 1 && x == normalize(b[j - 2]) && y == normalize(a[i - 2]) {
                edits = edits.min(before_last[at] + 1);
            }
            row[at] = edits.min(FAR);
        }
        if row.iter().all(|edits| *edits == FAR) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    // The lengths differ by at most `MAX_EDITS`, so the last cell is inside the band.
    let edits = last[b.len() + MAX_EDITS - a.len()];
    (edits <= MAX_EDITS).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, edits) in [
            ("", "", Some(0)),
            ("", "abc", Some(3)),
            ("", "abcd", None),
            ("abc", "abc", Some(0)),
            ("a.b", "A_B", Some(0)),
            ("abc", "acb", Some(1)),
            ("abc", "abd", Some(1)),
            ("abc", "abcd", Some(1)),
            ("abcd", "acd", Some(1)),
            ("abc", "xyz", Some(3)),
            ("abcd", "wxyz", None),
            ("badcfe", "abcdef", Some(3)),
            ("badcfehg", "abcdefgh", None),
            ("xxxabc", "abc", Some(3)),
            ("abcdefgh", "defghxyz", None),
            ("a", "abcdef", None),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    /// Reference implementation that computes all cells.
    fn full_distance(a: &[u8], b: &[u8]) -> usize {
        let mut cells = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                let mut candidates = Vec::new();
                if i > 0 {
                    candidates.push(cells[i - 1][j] + 1);
                }
                if j > 0 {
                    candidates.push(cells[i][j - 1] + 1);
                }
                if i > 0 && j > 0 {
                    candidates.push(cells[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]));
                }
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    candidates.push(cells[i - 2][j - 2] + 1);
                }
                cells[i][j] = candidates.into_iter().min().unwrap_or(0);
            }
        }
        cells[a.len()][b.len()]
    }

    #[test]
    fn distance_within_band_equals_full_table() {
        // All words of up to five letters from a two-letter alphabet, which cover all deviations from the diagonal.
        let words: Vec<String> = (0..=5)
            .flat_map(|length| {
                (0..1 << length).map(move |bits: u32| {
                    (0..length)
                        .map(|at| if bits >> at & 1 == 0 { 'A' } else { 'B' })
                        .collect()
                })
            })
            .collect();
        for a in &words {
            for b in &words {
                let whole = full_distance(a.as_bytes(), b.as_bytes());
                let near = (whole <= MAX_EDITS).then_some(whole);
                assert_eq!(distance(a, b), near, "{a} {b}");
            }
        }
    }

    #[test]
    fn find_accepts_every_spelling() {
        for name in [
            "aeron.name.resolver.threshold",
            "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
            "AERON_NAME_RESOLVER_THRESHOLD",
        ] {
            assert_eq!(
                find(name).map(|spec| spec.id),
                Some(OptionId::NameResolverThreshold),
                "{name}"
            );
        }
        assert!(find("aeron.mtu").is_none());
    }

    #[test]
    fn unknown_separates_typos_from_foreign_names() {
        let nearest =
            |name, source: &Source| unknown(name, source, Scope::Driver).map(|u| u.nearest);
        let line = Source::CommandLine;
        assert_eq!(
            nearest("aeron.mtu.lenght", &line),
            Some(Some("aeron.mtu.length"))
        );
        assert_eq!(nearest("aeron.something.else.entirely", &line), Some(None));
        assert_eq!(nearest("taran.profil", &line), Some(Some("taran.profile")));
        assert_eq!(
            nearest("threading.mode", &line),
            Some(Some("aeron.threading.mode"))
        );
        assert_eq!(nearest("profile", &line), Some(Some("taran.profile")));
        assert_eq!(nearest("nothing.like.it", &line), Some(None));
        assert_eq!(nearest("foo", &line), Some(None));
        let file = Source::File("a.properties".into());
        assert_eq!(nearest("threading.mode", &file), None);
        let environment = Source::Environment;
        assert_eq!(
            nearest("AERON_MTU_LENGHT", &environment),
            Some(Some("AERON_MTU_LENGTH"))
        );
        for name in [
            "AERON_ARCHIVE_DIR",
            "AERON_CLUSTER_ID",
            "AERON_CLUSTERED_SERVICE_X",
            "AERON_DIRS",
            "AERON_PORT",
            "AERON_SERVICE_HOST",
            "AERON_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY",
            "PATH",
            "TARAN_REQUIRE_INTEROP",
        ] {
            assert_eq!(nearest(name, &environment), None, "{name}");
        }
        assert_eq!(nearest("aeron.archive.dir", &line), None);
        assert_eq!(nearest("agrona.disable.bounds.checks", &line), None);
        assert_eq!(nearest("java.net.preferIPv4Stack", &line), None);
    }

    #[test]
    fn unknown_names_of_a_cluster_are_reported_by_its_own_programs() {
        let nearest = |name, scope| unknown(name, &Source::CommandLine, scope).map(|u| u.nearest);
        let misspelt = "aeron.cluster.max.session";
        for scope in [Scope::Cluster, Scope::Container, Scope::ClusterClient] {
            assert_eq!(
                nearest(misspelt, scope),
                Some(Some("aeron.cluster.max.sessions"))
            );
            assert_eq!(nearest("aeron.cluster.nothing", scope), Some(None));
            assert_eq!(nearest("aeron.cluster.backup.interval", scope), None);
            assert_eq!(nearest("aeron.archive.dirr", scope), None);
        }
        for scope in [Scope::Driver, Scope::Archive] {
            assert_eq!(nearest(misspelt, scope), None);
        }
    }

    #[test]
    fn search_options_finds_names_with_all_words() {
        let found = |text| -> Vec<&str> {
            search_options(text)
                .iter()
                .map(|spec| spec.property)
                .collect()
        };
        assert_eq!(
            found("mtu"),
            [
                "aeron.mtu.length",
                "aeron.ipc.mtu.length",
                "aeron.archive.control.mtu.length"
            ]
        );
        assert_eq!(found("Ipc MTU"), ["aeron.ipc.mtu.length"]);
        assert_eq!(found("nothing"), [""; 0]);
        assert_eq!(found(" . "), [""; 0]);
    }
}
