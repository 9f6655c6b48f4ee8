// SPDX-License-Identifier: Apache-2.0
//! Packages that a check supports, each with its selection of tests.

/// Package, and the arguments of `cargo test` that select its tests.
pub(crate) type PackageTests = (&'static str, &'static [&'static str]);

/// Returns the packages of these names, or all if there are no names.
pub(crate) fn choose(
    all: &'static [PackageTests],
    names: &[String],
) -> Result<impl Iterator<Item = &'static PackageTests>, String> {
    let is_unknown = |name: &&String| all.iter().all(|(package, _)| package != name);
    if let Some(unknown) = names.iter().find(is_unknown) {
        let known: Vec<&str> = all.iter().map(|(package, _)| *package).collect();
        return Err(format!(
            "{unknown} is not a package of this check; its packages: {}",
            known.join(", ")
        ));
    }
    Ok(all
        .iter()
        .filter(move |(package, _)| names.is_empty() || names.iter().any(|name| name == package)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[PackageTests] = &[("one", &["--lib"]), ("two", &[])];

    fn chosen(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let chosen = choose(ALL, &names)?;
        Ok(chosen.map(|(package, _)| *package).collect())
    }

    #[test]
    fn choose_with_names_takes_these_packages() {
        assert_eq!(chosen(&["two"]), Ok(vec!["two"]));
        assert_eq!(chosen(&[]), Ok(vec!["one", "two"]));
    }

    #[test]
    fn choose_with_unknown_name_fails_with_known_names() {
        let error = chosen(&["one", "three"]).unwrap_err();
        assert!(error.starts_with("three is not") && error.ends_with("one, two"));
    }
}
