// SPDX-License-Identifier: Apache-2.0
//! The mount table.

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) source: String,
    pub(crate) point: String,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// Returns true if the mount has this option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|each| each == option)
    }

    /// Returns true if the file system is on another machine.
    pub(crate) fn is_remote(&self) -> bool {
        let kinds = [
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "ceph",
            "9p",
            "glusterfs",
            "lustre",
        ];
        kinds.contains(&self.kind.as_str()) || self.kind.starts_with("fuse")
    }
}

/// Parses `/proc/mounts`; lines that are none are left out.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        Some(Mount {
            source: unescape(fields.next()?),
            point: unescape(fields.next()?),
            kind: fields.next()?.to_owned(),
            options: fields.next()?.split(',').map(str::to_owned).collect(),
        })
    };
    text.lines().filter_map(mount).collect()
}

/// Returns the mount that holds a path: the deepest one, and the last of several at the same point, which hides the
/// others.
pub(crate) fn of<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    let holds = |point: &str| {
        point == "/"
            || path
                .strip_prefix(point)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let holding = mounts.iter().filter(|mount| holds(&mount.point));
    holding.max_by_key(|mount| mount.point.len())
}

/// Replaces the escapes of blanks.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "/dev/sda1 / ext4 rw,relatime 0 0\ntmpfs /dev/shm tmpfs rw,size=64k 0 0\n\
        /dev/sdb /mnt/my\\040data xfs rw,noatime 0 0\nbroken\ntmpfs /mnt/my\\040data tmpfs rw 0 0\n";

    #[test]
    fn mount_of_a_path_is_the_deepest_and_the_last() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 4);
        assert_eq!(of(&mounts, "/dev/shm/aeron").unwrap().kind, "tmpfs");
        assert_eq!(of(&mounts, "/dev/shmx").unwrap().kind, "ext4");
        assert_eq!(of(&mounts, "/mnt/my data/a").unwrap().kind, "tmpfs");
        assert!(of(&mounts, "/").unwrap().has("relatime"));
    }
}
