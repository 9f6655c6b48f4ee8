// SPDX-License-Identifier: Apache-2.0
//! Writes the first inputs of each target into a folder, composed from our own frames, commands and layouts:
//! `cargo run --bin seeds FOLDER` makes `FOLDER/TARGET/NAME`.

mod archives;
#[path = "../../crates/sbe/codecs/tests/random/chance.rs"]
mod chance;
mod clusters;
mod fix;
mod remotes;
mod sbe;
mod secure;
mod tables;
mod texts;
mod wire;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

/// An input: its target, its name, its bytes.
pub(crate) struct Seed {
    target: &'static str,
    name: String,
    bytes: Vec<u8>,
}

impl Seed {
    pub(crate) fn new(
        target: &'static str,
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            target,
            name: name.into(),
            bytes: bytes.into(),
        }
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let folder = folder.join(self.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&self.name), &self.bytes)
    }
}

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: seeds FOLDER");
        return ExitCode::from(2);
    };
    let mut seeds = texts::seeds();
    seeds.extend(wire::seeds());
    seeds.extend(tables::seeds());
    seeds.extend(remotes::seeds());
    seeds.extend(sbe::seeds());
    seeds.extend(secure::seeds());
    seeds.extend(archives::seeds());
    seeds.extend(clusters::seeds());
    seeds.extend(fix::seeds());
    for seed in &seeds {
        if let Err(error) = seed.write(Path::new(&folder)) {
            eprintln!("seeds: {}/{}: {error}", seed.target, seed.name);
            return ExitCode::FAILURE;
        }
    }
    println!("{} seeds", seeds.len());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use taran_fuzz::targets;

    #[test]
    fn seeds_of_clusters_keep_the_invariants() {
        let seeds = crate::clusters::seeds();
        for seed in &seeds {
            let run = match seed.target {
                "cluster_consensus" => targets::cluster_consensus::run,
                "cluster_ingress" => targets::cluster_ingress::run,
                "cluster_mark" => targets::cluster_mark::run,
                "cluster_node_state" => targets::cluster_node_state::run,
                "cluster_recording_log" => targets::cluster_recording_log::run,
                "cluster_service" => targets::cluster_service::run,
                "cluster_snapshot" => targets::cluster_snapshot::run,
                other => panic!("{other} is no target of clusters"),
            };
            run(&seed.bytes);
        }
        assert!(seeds.len() >= 15);
    }

    #[test]
    fn seeds_of_archives_keep_the_invariants() {
        let seeds = crate::archives::seeds();
        for seed in &seeds {
            let run = match seed.target {
                "archive_catalog" => targets::archive_catalog::run,
                "archive_client" => targets::archive_client::run,
                "archive_import" => targets::archive_import::run,
                "archive_mark" => targets::archive_mark::run,
                "archive_messages" => targets::archive_messages::run,
                "archive_requests" => targets::archive_requests::run,
                "archive_segments" => targets::archive_segments::run,
                "archive_source" => targets::archive_source::run,
                other => panic!("{other} is no target of archives"),
            };
            run(&seed.bytes);
        }
        assert!(seeds.len() >= 20);
    }
}
