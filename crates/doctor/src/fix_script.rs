// SPDX-License-Identifier: Apache-2.0
//! A shell script of all mends. It is printed, never run.

use crate::finding::{Level, Mend, Report, quoted};

/// Returns a script with the commands of all deviations of a report, and what belongs into files for good as comments.
#[must_use]
pub fn fix_script(report: &Report) -> String {
    let mut script = "#!/bin/sh\n# Printed by `taran doctor --fix-script`. Read it before you run it as root.\nset -eu\n".to_owned();
    let mut for_good: Vec<String> = Vec::new();
    let deviations = report
        .findings()
        .iter()
        .filter(|finding| finding.level >= Level::Hint);
    for finding in deviations.filter(|finding| !finding.mends.is_empty()) {
        script += &format!(
            "\n# {} ({}): {}\n",
            finding.id,
            finding.level,
            one_line(&finding.found)
        );
        for mend in &finding.mends {
            let comment = if matches!(mend, Mend::Boot(_) | Mend::Advice(_)) {
                "# "
            } else {
                ""
            };
            script += &format!("{comment}{}\n", one_line(&mend.now()));
            let line = match mend {
                Mend::Sysctl { name, value } => {
                    append(&format!("{name} = {value}"), "/etc/sysctl.d/90-taran.conf")
                }
                Mend::Write { path, value } => append(
                    &format!("w {path} - - - - {value}"),
                    "/etc/tmpfiles.d/taran.conf",
                ),
                Mend::Boot(_) | Mend::Command { .. } => format!("# {}", one_line(&mend.for_good())),
                Mend::Advice(_) => continue,
            };
            if !for_good.contains(&line) {
                for_good.push(line);
            }
        }
    }
    if !for_good.is_empty() {
        script += "\n# For good: remove the leading # of the lines that you want.\n";
        for line in for_good {
            if line.starts_with('#') {
                script += &format!("{line}\n");
            } else {
                script += &format!("#{line}\n");
            }
        }
    }
    script
}

fn append(line: &str, file: &str) -> String {
    format!("printf '%s\\n' {} >> {file}", quoted(&one_line(line)))
}

/// Replaces control characters, so that no text of a file can end a comment or a command.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::plan::Profile;

    fn script(found: &str, mends: Vec<Mend>) -> String {
        let finding = Finding {
            id: "vm.quiet",
            level: Level::Warn,
            found: found.to_owned(),
            wanted: String::new(),
            why: "",
            mends,
        };
        fix_script(&Report::new(
            Profile::Latency,
            Vec::new(),
            "lo",
            vec![finding],
        ))
    }

    #[test]
    fn fix_script_has_commands_for_now_and_comments_for_good() {
        let script = script(
            "60",
            vec![
                Mend::Sysctl {
                    name: "vm.swappiness",
                    value: "0".to_owned(),
                },
                Mend::Boot("nohz_full=2".to_owned()),
            ],
        );
        assert!(
            script.contains("\nsysctl -w vm.swappiness=0\n# boot with nohz_full=2\n"),
            "{script}"
        );
        assert!(
            script
                .contains("\n#printf '%s\\n' 'vm.swappiness = 0' >> /etc/sysctl.d/90-taran.conf\n"),
            "{script}"
        );
        assert!(
            script.contains("\n# kernel command line: nohz_full=2\n"),
            "{script}"
        );
    }

    #[test]
    fn fix_script_of_hostile_text_has_no_command_of_it() {
        let script = script("x\nreboot", vec![Mend::Advice("y\nreboot".to_owned())]);
        assert!(script.lines().all(|line| line != "reboot"), "{script}");
    }
}
