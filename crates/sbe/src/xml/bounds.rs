//! What is looked for before a text is parsed, because it would cost more than it is worth.
//!
//! The parser compares each attribute of an element with all others, and copies the namespaces around an element that
//! has one of its own. Schemas have few of either, and no entities of their own.

use crate::problem::Problem;

/// The most attributes of one element.
const MAX_ATTRIBUTES: usize = 64;
/// The most declarations of namespaces in one file.
const MAX_NAMESPACES: usize = 1_000;

/// The first thing that is too much, and where it is.
pub(super) fn check(text: &str) -> Result<(), (usize, Problem)> {
    // Nowhere else can they be defined; comments may speak of them.
    if text.contains("<!DOCTYPE")
        && let Some(start) = text.find("<!ENTITY")
    {
        return Err((start, Problem::Entities));
    }
    if let Some((start, _)) = text.match_indices("xmlns").nth(MAX_NAMESPACES) {
        return Err((start, Problem::TooManyNamespaces(MAX_NAMESPACES)));
    }
    // No tag goes on behind the next `<`, so what is between two of them has at least the attributes of one.
    let mut start = 0;
    for part in text.split('<') {
        if assignments(part) > MAX_ATTRIBUTES {
            let start = start.max(1) - 1;
            return Err((start, Problem::TooManyAttributes(MAX_ATTRIBUTES)));
        }
        start += part.len() + 1;
    }
    Ok(())
}

/// How many times something is followed by an equals sign and a quote.
fn assignments(part: &str) -> usize {
    let is_quoted = |rest: &&str| rest.trim_start().starts_with(['"', '\'']);
    part.split('=').skip(1).filter(is_quoted).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_schemas_have_is_not_too_much() {
        assert_eq!(check(""), Ok(()));
        let separator = "=".repeat(10_000);
        let usual = format!("<a b='1' c = \"2\"><!-- {separator} --></a>").repeat(10);
        assert_eq!(check(&usual), Ok(()));
    }

    #[test]
    fn more_than_that_is_told_where_it_is() {
        let attributes = |count: usize| {
            let all: String = (0..count).map(|index| format!(" a{index} = '1'")).collect();
            format!("<a/>\n<b{all}/>")
        };
        assert_eq!(check(&attributes(64)), Ok(()));
        assert_eq!(
            check(&attributes(65)),
            Err((5, Problem::TooManyAttributes(64)))
        );
        let namespaces = "<a xmlns='b'/>".repeat(1_001);
        assert_eq!(
            check(&namespaces),
            Err((14_003, Problem::TooManyNamespaces(1_000)))
        );
        assert_eq!(
            check("<!DOCTYPE a [<!ENTITY b 'c'>]>"),
            Err((13, Problem::Entities))
        );
    }
}
