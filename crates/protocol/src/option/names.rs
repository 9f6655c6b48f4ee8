//! Names: how properties and variables correspond, and which known name an unknown one was meant to be.

use super::layers::Source;
use super::spec::OptionSpec;
use super::table::OptionId;

/// A name of this project's or Aeron's that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOption {
    /// The name as it was given.
    pub name: String,
    /// Where it was given.
    pub source: Source,
    /// The known name nearest to it, if one is near.
    pub nearest: Option<&'static str>,
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

/// Most edits between a name and what it was meant to be.
const MAX_EDITS: usize = 3;
/// An environment serves many programs, so there a name must be this near to count as a mistake.
const MAX_EDITS_IN_ENVIRONMENT: usize = 2;
/// A short name is near to many others.
const MIN_LENGTH_IN_ENVIRONMENT: usize = 14;

/// What belongs to other components, tools and builds; the driver does not know their names.
const FOREIGN: &[&str] = &[
    "AERON_AGENT_",
    "AERON_ARCHIVE_",
    "AERON_ATS_",
    "AERON_BUILD",
    "AERON_CLUSTER",
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

/// The form in which names are compared: that of environment variables.
pub(super) fn normalised(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == '.' {
                '_'
            } else {
                c.to_ascii_uppercase()
            }
        })
        .collect()
}

/// The option with this name: a property, its variable, or the variable that belongs to the property by the rule
/// (upper case, `.` becomes `_`) even if the official variable is another one.
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    let name = normalised(name);
    OptionId::ALL
        .iter()
        .find(|spec| spec.variable == name || normalised(spec.property) == name)
}

/// The option with this name, that of its property or of its environment variable.
#[must_use]
pub fn find_option(name: &str) -> Option<&'static OptionSpec> {
    find(name)
}

/// The property whose name is nearest to one that no option has, if one is near.
#[must_use]
pub fn nearest_option(name: &str) -> Option<&'static str> {
    let wanted = normalised(name);
    OptionId::ALL
        .iter()
        .map(|spec| (distance(&wanted, &normalised(spec.property)), spec.property))
        .filter(|(edits, _)| *edits <= MAX_EDITS)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, property)| property)
}

/// Whether an unknown name concerns this program at all.
pub(super) fn is_ours(normalised: &str) -> bool {
    (normalised.starts_with("AERON_") || normalised.starts_with("TARAN_"))
        && !FOREIGN.iter().any(|prefix| normalised.starts_with(prefix))
}

/// Reports a name that [`find`] does not know; `None` if it is none of our business.
pub(super) fn unknown(name: &str, source: &Source) -> Option<UnknownOption> {
    let wanted = normalised(name);
    if !is_ours(&wanted) {
        return None;
    }
    let environment = *source == Source::Environment;
    let (most, spelled): (usize, fn(&'static OptionSpec) -> &'static str) = if environment {
        (MAX_EDITS_IN_ENVIRONMENT, |spec| spec.variable)
    } else {
        (MAX_EDITS, |spec| spec.property)
    };
    let nearest = OptionId::ALL
        .iter()
        .map(|spec| (distance(&wanted, &normalised(spelled(spec))), spec))
        .filter(|(edits, _)| *edits <= most)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, spec)| spelled(spec));
    if environment && (nearest.is_none() || wanted.len() < MIN_LENGTH_IN_ENVIRONMENT) {
        return None;
    }
    Some(UnknownOption {
        name: name.to_owned(),
        source: source.clone(),
        nearest,
    })
}

/// Insertions, deletions, replacements and swaps of neighbours that make one text the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > MAX_EDITS {
        return usize::MAX;
    }
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("abc", "abcd", 1),
            ("abcd", "acd", 1),
            ("abc", "xyz", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
        assert_eq!(distance("a", "abcdef"), usize::MAX);
    }

    #[test]
    fn names_are_found_in_every_spelling() {
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
    fn a_mistake_is_told_from_what_belongs_to_others() {
        let nearest = |name, source: &Source| unknown(name, source).map(|u| u.nearest);
        let line = Source::CommandLine;
        assert_eq!(
            nearest("aeron.mtu.lenght", &line),
            Some(Some("aeron.mtu.length"))
        );
        assert_eq!(nearest("aeron.something.else.entirely", &line), Some(None));
        assert_eq!(nearest("taran.profil", &line), Some(Some("taran.profile")));
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
    }
}
