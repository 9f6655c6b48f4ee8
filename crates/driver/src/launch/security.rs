// SPDX-License-Identifier: Apache-2.0
//! Construction of transport security from the options and key files.

#[cfg(feature = "secure")]
pub(super) use present::build;

#[cfg(not(feature = "secure"))]
pub(super) use absent::build;

/// Transport security of a driver.
#[derive(Default)]
pub(super) struct Parts {
    /// Conductor's part.
    pub(super) security: crate::secured::Security,
    /// Layer of the sockets.
    pub(super) layer: Option<Box<dyn taran_net::NetworkLayer>>,
    /// Jumps of the wall clock, for the agents that seal.
    pub(super) jumps: Option<crate::clock_jumps::ClockJumps>,
    /// Handle to the keys, and their directory unless the program set them.
    #[cfg(feature = "secure")]
    pub(super) control: Option<(
        crate::secured::SecurityControl,
        Option<crate::secured::KeyDirectory>,
    )>,
}

#[cfg(not(feature = "secure"))]
mod absent {
    use super::Parts;
    use crate::conductor::Counters;
    use crate::context::DriverContext;
    use crate::error::DriverError;

    /// Returns nothing; fails if something is to be secured.
    pub(in crate::launch) fn build(
        context: &mut DriverContext,
        _counters: &mut Counters,
        _seed: u64,
    ) -> Result<Parts, DriverError> {
        match context.options().secure_mode_name() {
            "off" => Ok(Parts::default()),
            mode => Err(DriverError::Security {
                mode: mode.to_owned(),
                reason: "this driver is built without the feature secure".to_owned(),
            }),
        }
    }
}

#[cfg(feature = "secure")]
mod present {
    use std::path::PathBuf;

    use taran_core::queue;
    use taran_secure::keeper::Entropy;

    use super::Parts;
    use crate::clock_jumps::ClockJumps;
    use crate::conductor::Counters;
    use crate::context::DriverContext;
    use crate::error::DriverError;
    use crate::secured::{
        DriverKeys, KeyDirectory, Security, SecurityControl, SecuritySpec, default_directory,
        read_options,
    };

    /// Commands of the program that wait for the conductor.
    const COMMANDS: usize = 16;

    /// Generator of the operating system.
    struct SystemEntropy;

    impl Entropy for SystemEntropy {
        fn fill(&mut self, bytes: &mut [u8]) {
            let mut filled = 0;
            while filled < bytes.len() {
                let flags = rustix::rand::GetRandomFlags::empty();
                // Interrupted calls are repeated. Without random bytes nothing can be secured, and a key must not be
                // guessed: the system call fails on no kernel that runs this driver.
                match rustix::rand::getrandom(&mut bytes[filled..], flags) {
                    Ok(count) => filled += count,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => panic!("the system gives no random bytes: {error}"),
                }
            }
        }
    }

    /// Reads options and keys. Nothing is built if nothing is to be secured.
    pub(in crate::launch) fn build(
        context: &mut DriverContext,
        counters: &mut Counters,
        seed: u64,
    ) -> Result<Parts, DriverError> {
        let options = read_options(context.options())
            .map_err(|conflict| DriverError::Conflicts(vec![conflict]))?;
        let mode = context.options().secure_mode_name().to_owned();
        if mode == "off" {
            return Ok(Parts::default());
        }
        let failed = |reason: String| DriverError::Security {
            mode: mode.clone(),
            reason,
        };
        let configured = context.options().secure_keys_dir();
        let directory = configured
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .or_else(default_directory);
        let keys_path = directory.as_ref().map_or_else(
            || "the trusted keys".to_owned(),
            |path| path.join(KeyDirectory::TRUSTED).display().to_string(),
        );
        let (keys, directory) = if let Some(keys) = context.keys.take() {
            (keys, None)
        } else {
            let directory = directory.ok_or_else(|| {
                failed("no directory of keys: set taran.secure.keys.dir".to_owned())
            })?;
            let directory = KeyDirectory::new(directory);
            let keys = DriverKeys {
                identity: directory
                    .identity(KeyDirectory::IDENTITY)
                    .map_err(|error| failed(error.to_string()))?,
                trust: directory
                    .trust()
                    .map_err(|error| failed(error.to_string()))?,
                entropy: Box::new(SystemEntropy),
            };
            (keys, Some(directory))
        };
        let (to_conductor, commands) = queue::spsc(COMMANDS);
        let jumps = ClockJumps::default();
        let spec = SecuritySpec {
            options,
            keys,
            keys_path,
            seed,
            commands,
            jumps: jumps.clone(),
            events: context.events.clone(),
            jobs: context.handshakes.take(),
        };
        let (security, network) = Security::new(spec, |counter| counters.secure(counter))
            .map_err(|failure| failed(failure.text))?;
        Ok(Parts {
            security,
            layer: Some(Box::new(network)),
            jumps: Some(jumps),
            control: Some((SecurityControl::new(to_conductor), directory)),
        })
    }
}
