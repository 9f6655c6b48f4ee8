//! Where files come from.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Something that has files.
pub trait Sources {
    /// Up to `limit + 1` bytes of the file of that name.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it cannot be read.
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>>;

    /// The name of the file that another one calls `href`.
    fn beside(&self, name: &str, href: &str) -> String {
        let folder = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
        plain(&folder.join(href)).to_string_lossy().into_owned()
    }
}

/// A path without detours, so that one file has one name.
fn plain(path: &Path) -> PathBuf {
    use std::path::Component::{CurDir, Normal, ParentDir};
    let mut parts: Vec<std::path::Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (CurDir, _) => {}
            (ParentDir, Some(Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.iter().collect()
}

/// Files on disk: those in some folders, and below them.
///
/// Schemas of strangers shall not make anybody read what lies elsewhere. So it is refused, whatever leads there: `..`, a path
/// from the root, a link.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// They, without detours.
    folders: Vec<PathBuf>,
}

impl Disk {
    /// A schema, and what lies in its folder; where the schema is a link, in the one that it leads to as well.
    #[must_use]
    pub fn around(schema: impl AsRef<Path>) -> Self {
        let schema = schema.as_ref();
        let mut disk = Self::default();
        match schema.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => disk.add(folder),
            _ => disk.add(Path::new(".")),
        }
        if let Some(folder) = fs::canonicalize(schema)
            .ok()
            .as_deref()
            .and_then(Path::parent)
        {
            disk.add(folder);
        }
        disk
    }

    /// Those, and what lies in that folder.
    #[must_use]
    pub fn and(mut self, folder: impl AsRef<Path>) -> Self {
        self.add(folder.as_ref());
        self
    }

    fn add(&mut self, folder: &Path) {
        // In one that cannot be found, nothing can be found either.
        self.folders.extend(fs::canonicalize(folder).ok());
    }
}

impl Sources for Disk {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        let path = fs::canonicalize(name)?;
        if !self.folders.iter().any(|folder| path.starts_with(folder)) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it lies outside of the folder of the schema, and of those that were allowed besides",
            ));
        }
        // Before it is opened: that alone waits for ever where it is a pipe.
        let known = fs::metadata(&path)?;
        if !known.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        // What the kernel makes up while it is read may let its reader wait, and is said to have no bytes.
        if known.len() == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        File::open(&path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Files that are in memory, by name.
#[derive(Debug, Clone, Default)]
pub struct InMemory(pub BTreeMap<String, Vec<u8>>);

impl<Name: Into<String>, Content: Into<Vec<u8>>> FromIterator<(Name, Content)> for InMemory {
    fn from_iter<Files: IntoIterator<Item = (Name, Content)>>(files: Files) -> Self {
        Self(
            files
                .into_iter()
                .map(|(name, content)| (name.into(), content.into()))
                .collect(),
        )
    }
}

impl Sources for InMemory {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        let bytes = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(bytes[..bytes.len().min(limit.saturating_add(1))].to_vec())
    }
}

/// One text, and nothing that it could include.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles<'text>(pub &'text str);

impl Sources for NoFiles<'_> {
    fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        if !name.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "a schema that is no file has no others beside it",
            ));
        }
        let bytes = self.0.as_bytes();
        Ok(bytes[..bytes.len().min(limit.saturating_add(1))].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name_whatever_road_leads_to_it() {
        for (name, href, expected) in [
            ("a.xml", "b.xml", "b.xml"),
            ("dir/a.xml", "b.xml", "dir/b.xml"),
            ("dir/a.xml", "./sub/../b.xml", "dir/b.xml"),
            ("dir/a.xml", "../b.xml", "b.xml"),
            ("a.xml", "../b.xml", "../b.xml"),
            ("/dir/a.xml", "/b.xml", "/b.xml"),
        ] {
            let found = Disk::default().beside(name, href);
            assert_eq!(found, expected, "{href} beside {name}");
        }
    }
}
