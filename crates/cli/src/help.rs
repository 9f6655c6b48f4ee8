// SPDX-License-Identifier: Apache-2.0
//! The description of the command line: help texts that fit the terminal.

use clap::{Command, CommandFactory};

use crate::Cli;

/// Length of a line, with the first word of the next one, from which on the line was wrapped in the source.
const WRAPPED: usize = 100;

/// Returns the description of the command line. The lines of its texts are as long as their paragraphs, so that they wrap to
/// the terminal.
pub(crate) fn command() -> Command {
    unwrap_all(Cli::command())
}

fn unwrap_all(command: Command) -> Command {
    let text = command
        .get_after_help()
        .map(|text| unwrap(&text.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    let names: Vec<String> = command
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, unwrap_all)
    })
}

/// Joins the lines of each paragraph. Indented lines, as those of examples, stay as they are.
fn unwrap(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        let is_wrapped = lines.peek().is_some_and(|next| {
            let word = next.split(' ').next().unwrap_or("");
            !line.is_empty()
                && !line.starts_with(' ')
                && !word.is_empty()
                && line.len() + 1 + word.len() > WRAPPED
        });
        joined.push(if is_wrapped { ' ' } else { '\n' });
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwrap_joins_paragraphs_and_keeps_examples() {
        let line = "word ".repeat(22).trim_end().to_owned();
        let text =
            format!("{line}\n{line}\nend.\n\n  taran a   {line}\n  taran b\n\nExit status: 0.");
        assert_eq!(
            unwrap(&text),
            format!("{line} {line} end.\n\n  taran a   {line}\n  taran b\n\nExit status: 0.\n")
        );
    }

    #[test]
    fn description_is_consistent() {
        command().debug_assert();
    }
}
