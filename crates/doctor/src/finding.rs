// SPDX-License-Identifier: Apache-2.0
//! Findings and the report of an examination.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::plan::Profile;

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Level {
    /// The check does not apply to this machine or plan.
    #[serde(rename = "n/a")]
    NotApplicable,
    /// As wanted.
    #[serde(rename = "ok")]
    Ok,
    /// The files that the check reads are hidden from this process.
    #[serde(rename = "unseen")]
    Unseen,
    /// Worth knowing; affects figures slightly or belongs to a host.
    #[serde(rename = "hint")]
    Hint,
    /// Figures or behaviour suffer.
    #[serde(rename = "warn")]
    Warn,
    /// The software fails or figures are worthless.
    #[serde(rename = "fail")]
    Fail,
}

impl Level {
    /// Returns the next lower level of a deviation; a hint stays one.
    pub(crate) fn lowered(self) -> Level {
        match self {
            Level::Fail => Level::Warn,
            Level::Warn => Level::Hint,
            other => other,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::NotApplicable => "n/a",
            Level::Ok => "ok",
            Level::Unseen => "unseen",
            Level::Hint => "hint",
            Level::Warn => "warn",
            Level::Fail => "fail",
        })
    }
}

/// A change of the machine that mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    /// Set a kernel variable, such as `vm.swappiness`.
    Sysctl {
        /// Name with dots.
        name: &'static str,
        /// Value.
        value: String,
    },
    /// Write a value into a file of `/sys` or `/proc`.
    Write {
        /// Absolute path.
        path: String,
        /// Value.
        value: String,
    },
    /// Add a parameter to the kernel's command line, which takes a reboot.
    Boot(String),
    /// Run a command, which lasts until the next boot, and write a line into a file for good.
    Command {
        /// Command for now.
        now: String,
        /// Text for good.
        for_good: String,
    },
    /// Something that no command does.
    Advice(String),
}

impl Mend {
    /// Returns the command or text for the running system.
    #[must_use]
    pub fn now(&self) -> String {
        match self {
            Mend::Sysctl { name, value } => format!("sysctl -w {name}={}", quoted(value)),
            Mend::Write { path, value } => format!("echo {} > {}", quoted(value), quoted(path)),
            Mend::Boot(parameter) => format!("boot with {parameter}"),
            Mend::Command { now, .. } => now.clone(),
            Mend::Advice(text) => text.clone(),
        }
    }

    /// Returns the line or text that lasts over a reboot.
    #[must_use]
    pub fn for_good(&self) -> String {
        match self {
            Mend::Sysctl { name, value } => {
                format!("/etc/sysctl.d/90-taran.conf: {name} = {value}")
            }
            Mend::Write { path, value } => {
                format!("/etc/tmpfiles.d/taran.conf: w {path} - - - - {value}")
            }
            Mend::Boot(parameter) => format!("kernel command line: {parameter}"),
            Mend::Command { for_good, .. } => for_good.clone(),
            Mend::Advice(text) => text.clone(),
        }
    }
}

/// Quotes a word for a shell if it has other letters than those of paths and numbers.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=+%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Serialize for Mend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Texts {
            now: String,
            for_good: String,
        }
        Texts {
            now: self.now(),
            for_good: self.for_good(),
        }
        .serialize(serializer)
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check (`docs/spec/benchmarks.md` §2.5).
    pub id: &'static str,
    /// Outcome.
    pub level: Level,
    /// State of the machine, or the reason why it cannot be seen.
    pub found: String,
    /// State that is wanted.
    pub wanted: String,
    /// Effect of a deviation.
    pub why: &'static str,
    /// Changes that mend a deviation; empty if there is none.
    pub mends: Vec<Mend>,
}

/// All findings of an examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    schema: &'static str,
    profile: Profile,
    cpus: Vec<usize>,
    interface: String,
    findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(
        profile: Profile,
        cpus: Vec<usize>,
        interface: &str,
        findings: Vec<Finding>,
    ) -> Report {
        Report {
            schema: "taran-doctor/1",
            profile,
            cpus,
            interface: interface.to_owned(),
            findings,
        }
    }

    /// Returns the profile that the levels follow.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the findings in the order of the checks.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the finding of a check.
    #[must_use]
    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// Returns the gravest level.
    #[must_use]
    pub fn worst(&self) -> Level {
        let levels = self.findings.iter().map(|finding| finding.level);
        levels.max().unwrap_or(Level::Ok)
    }

    /// Returns the exit code of the command: 4 with a failure, 3 with a warning, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.worst() {
            Level::Fail => 4,
            Level::Warn => 3,
            _ => 0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = crate::cpu_list::CpuList::new(self.cpus.clone());
        writeln!(
            f,
            "profile {}, CPUs {cpus}, interface {}",
            format!("{:?}", self.profile).to_lowercase(),
            self.interface
        )?;
        for finding in &self.findings {
            writeln!(
                f,
                "{:<6}  {:<13} {}",
                finding.level, finding.id, finding.found
            )?;
            if finding.level < Level::Hint {
                continue;
            }
            writeln!(f, "        wanted:   {}", finding.wanted)?;
            writeln!(f, "        why:      {}", finding.why)?;
            for mend in &finding.mends {
                let (now, for_good) = (mend.now(), mend.for_good());
                if now == for_good {
                    writeln!(f, "        mend:     {now}")?;
                } else {
                    writeln!(f, "        now:      {now}")?;
                    writeln!(f, "        for good: {for_good}")?;
                }
            }
        }
        let count = |level| {
            self.findings
                .iter()
                .filter(|finding| finding.level == level)
                .count()
        };
        write!(
            f,
            "{} fail, {} warn, {} hint, {} ok, {} not visible, {} not applicable",
            count(Level::Fail),
            count(Level::Warn),
            count(Level::Hint),
            count(Level::Ok),
            count(Level::Unseen),
            count(Level::NotApplicable)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_texts_are_safe_in_a_shell() {
        let mend = Mend::Write {
            path: "/sys/x y".to_owned(),
            value: "$(rm -r /)'".to_owned(),
        };
        assert_eq!(mend.now(), "echo '$(rm -r /)'\\''' > '/sys/x y'");
        assert_eq!(quoted("0-3,8"), "0-3,8");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn exit_code_follows_the_gravest_level() {
        let finding = |level| Finding {
            id: "x",
            level,
            found: String::new(),
            wanted: String::new(),
            why: "",
            mends: Vec::new(),
        };
        let code = |levels: &[Level]| {
            let findings = levels.iter().map(|level| finding(*level)).collect();
            Report::new(Profile::Latency, Vec::new(), "lo", findings).exit_code()
        };
        assert_eq!(code(&[]), 0);
        assert_eq!(code(&[Level::Ok, Level::Hint, Level::Unseen]), 0);
        assert_eq!(code(&[Level::Warn, Level::Hint]), 3);
        assert_eq!(code(&[Level::Fail, Level::Warn]), 4);
    }
}
