// SPDX-License-Identifier: Apache-2.0
//! Configuration of the driver: environment, property files, `-D`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use taran_protocol::option::{
    OptionErrors, OptionId, OptionSet, OptionSpec, PropertiesError, Source, UnknownOption,
    find_option, parse_define, parse_properties,
};

use super::Settings;

/// Reason why the configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigureError {
    #[error(
        "{text} is not a property file: there is no such file. To set an option, write -D{text}"
    )]
    NotAFile { text: String },
    #[error("malformed define: {text} (expected -Dname=value)")]
    Define { text: String },
    #[error(
        "property files are not fetched over the network: {url}. Anyone who can alter the response could reconfigure \
        the program; download the file and pass its path"
    )]
    Remote { url: String },
    #[error("property file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("property file {}: {source}", path.display())]
    Properties {
        path: PathBuf,
        source: PropertiesError,
    },
    #[error(transparent)]
    Options(OptionErrors),
}

/// Returns all options of a driver with their values, and the names that are no options. All invalid values are reported
/// together.
pub(crate) fn options(
    settings: &Settings,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(OptionSet, Vec<UnknownOption>), ConfigureError> {
    apply(OptionSet::driver(), settings, environment)
}

/// Returns the options with the values from environment, files and command line, and the names that are no options. All
/// invalid values are reported together.
pub(crate) fn apply(
    options: OptionSet,
    settings: &Settings,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(OptionSet, Vec<UnknownOption>), ConfigureError> {
    let mut layers = ConfigLayers {
        options,
        unknown: Vec::new(),
        rejected: Vec::new(),
    };
    layers.apply(&Source::Environment, environment);
    for name in &settings.files {
        let path = local_path(name)?;
        layers.apply(&Source::File(path.to_path_buf()), read_file(name)?);
    }
    layers.apply(&Source::CommandLine, defines(settings)?);
    if layers.rejected.is_empty() {
        Ok((layers.options, layers.unknown))
    } else {
        Err(ConfigureError::Options(OptionErrors(layers.rejected)))
    }
}

/// Adds unknown names that are not in the list yet.
pub(crate) fn add_unknown(unknown: &mut Vec<UnknownOption>, more: Vec<UnknownOption>) {
    for option in more {
        if !unknown.iter().any(|known| known.name == option.name) {
            unknown.push(option);
        }
    }
}

/// Returns the options that property files and the command line set, each once.
pub(crate) fn defined(settings: &Settings) -> Result<Vec<&'static OptionSpec>, ConfigureError> {
    let mut pairs = Vec::new();
    for name in &settings.files {
        pairs.extend(read_file(name)?);
    }
    pairs.extend(defines(settings)?);
    let mut defined: Vec<&'static OptionSpec> = Vec::new();
    for option in pairs.iter().filter_map(|(name, _)| find_option(name)) {
        if !defined.iter().any(|known| known.id == option.id) {
            defined.push(option);
        }
    }
    Ok(defined)
}

fn read_file(name: &str) -> Result<Vec<(String, String)>, ConfigureError> {
    let path = local_path(name)?;
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains('=') => {
            return Err(ConfigureError::NotAFile {
                text: name.to_owned(),
            });
        }
        text => text.map_err(|source| ConfigureError::File {
            path: path.to_path_buf(),
            source,
        })?,
    };
    parse_properties(&text).map_err(|source| ConfigureError::Properties {
        path: path.to_path_buf(),
        source,
    })
}

fn defines(settings: &Settings) -> Result<Vec<(String, String)>, ConfigureError> {
    let directory = settings.aeron_dir.iter();
    let mut pairs: Vec<_> = directory
        .map(|directory| (OptionId::Dir.spec().property.to_owned(), directory.clone()))
        .collect();
    for text in &settings.defines {
        let define =
            parse_define(text).ok_or_else(|| ConfigureError::Define { text: text.clone() })?;
        pairs.push(define);
    }
    Ok(pairs)
}

struct ConfigLayers {
    options: OptionSet,
    unknown: Vec<UnknownOption>,
    rejected: Vec<taran_protocol::option::OptionError>,
}

impl ConfigLayers {
    fn apply(&mut self, source: &Source, pairs: impl IntoIterator<Item = (String, String)>) {
        // Pairs are applied one by one, so that an invalid value does not hide unknown names among the others.
        for pair in pairs {
            match self.options.apply(source, [pair]) {
                Ok(unknown) => self.unknown.extend(unknown),
                Err(OptionErrors(errors)) => self.rejected.extend(errors),
            }
        }
    }
}

fn local_path(name: &str) -> Result<&Path, ConfigureError> {
    match name.split_once("://") {
        Some(("file", path)) => Ok(Path::new(path.strip_prefix("localhost").unwrap_or(path))),
        Some(("http" | "https", _)) => Err(ConfigureError::Remote {
            url: name.to_owned(),
        }),
        _ => Ok(Path::new(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(files: &[&str], defines: &[&str]) -> Settings {
        Settings {
            files: files.iter().map(ToString::to_string).collect(),
            defines: defines.iter().map(ToString::to_string).collect(),
            aeron_dir: None,
        }
    }

    fn variables(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn options_from_command_line_override_environment() {
        let (options, unknown) = options(
            &arguments(&[], &["aeron.mtu.length=8k", "AERON_MAX_RESEND=3"]),
            variables(&[
                ("AERON_MTU_LENGTH", "4k"),
                ("AERON_DIR", "/x"),
                ("PATH", "/bin"),
            ]),
        )
        .unwrap();
        assert_eq!(
            (options.mtu_length(), options.max_resend(), options.dir()),
            (8192, 3, Some("/x"))
        );
        assert_eq!(options.source(OptionId::MtuLength), &Source::CommandLine);
        assert!(unknown.is_empty());
    }

    #[test]
    fn options_with_several_invalid_values_report_all() {
        let error = options(
            &arguments(&[], &["aeron.max.resend=900", "aeron.threading.mode=FAST"]),
            variables(&[("AERON_MTU_LENGTH", "big")]),
        )
        .unwrap_err();
        let ConfigureError::Options(OptionErrors(errors)) = &error else {
            panic!("{error}")
        };
        assert_eq!(errors.len(), 3, "{error}");
    }

    #[test]
    fn options_with_misspelt_name_suggest_the_nearest() {
        let (_, unknown) =
            options(&arguments(&[], &["aeron.mtu.lenght=8k"]), variables(&[])).unwrap();
        assert_eq!(unknown[0].nearest, Some("aeron.mtu.length"));
    }

    #[test]
    fn options_from_unreadable_source_name_it_in_the_error() {
        for (settings, text) in [
            (arguments(&[], &["nothing"]), "malformed define: nothing"),
            (
                arguments(&["aeron.dir=/nowhere"], &[]),
                "write -Daeron.dir=/nowhere",
            ),
            (
                arguments(&["http://host/a.properties"], &[]),
                "http://host/a.properties",
            ),
            (
                arguments(&["/nowhere/a.properties"], &[]),
                "property file /nowhere/a.properties: ",
            ),
            (
                arguments(&["file:///nowhere/a.properties"], &[]),
                "property file /nowhere/a.properties: ",
            ),
        ] {
            let error = options(&settings, variables(&[])).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
