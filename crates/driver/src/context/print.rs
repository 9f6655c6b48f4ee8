//! The configuration as text, for `aeron.print.configuration` (spec/03 §5.3).

use taran_protocol::option::{OptionSet, Value};

/// Lines as the official driver prints them: one `key=value` for each option, sizes in bytes, times in nanoseconds.
pub fn print_configuration(options: &OptionSet) -> String {
    let mut text = String::from("aeron_driver_context_t {\n");
    for explained in options.explain() {
        let property = explained.option.property;
        let key = property
            .strip_prefix("aeron.")
            .unwrap_or(property)
            .replace('.', "_");
        let value = match options.value(explained.option.id) {
            Value::Unset => String::new(),
            Value::Bool(value) => i32::from(*value).to_string(),
            Value::Int(value) => value.to_string(),
            Value::Text(value) => value.clone(),
            Value::Choice(value) => (*value).to_owned(),
            Value::Ports(low, high) => format!("\"{low} {high}\""),
            Value::Affinity(affinity) => affinity.to_string(),
        };
        let unit = match explained.option.kind {
            taran_protocol::option::Kind::Duration { .. } => "_ns",
            taran_protocol::option::Kind::Millis => "_ms",
            _ => "",
        };
        text.push_str(&format!("    {key}{unit}={value}\n"));
    }
    text.push_str("}\n");
    text
}
