// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn parse_each_kind_returns_value_or_error() {
    let buffer = Kind::Size {
        min: 1_049_344,
        max: i64::MAX,
        form: Form::PowerOfTwoAnd(768),
    };
    let mtu = Kind::Size {
        min: 64,
        max: 65504,
        form: Form::MultipleOf(32),
    };
    for (kind, text, expected) in [
        (Kind::Bool, "true", Ok(Value::Bool(true))),
        (Kind::Bool, "off", Ok(Value::Bool(false))),
        (Kind::Bool, "TRUE", Err(InvalidValue::Malformed)),
        (Kind::Bool, "yes", Err(InvalidValue::Malformed)),
        (buffer, "1049344", Ok(Value::Int(1_049_344))),
        (buffer, "2097920", Ok(Value::Int(2_097_920))),
        (buffer, "2m", Err(InvalidValue::OutOfRange)),
        (mtu, "1400", Err(InvalidValue::OutOfRange)),
        (mtu, "8k", Ok(Value::Int(8192))),
        (mtu, "big", Err(InvalidValue::Malformed)),
        (Kind::Duration { min: 1000 }, "0", Ok(Value::Int(1000))),
        (Kind::Duration { min: 1000 }, "5ns", Ok(Value::Int(1000))),
        (
            Kind::Duration { min: 1000 },
            "999",
            Err(InvalidValue::WithoutUnit),
        ),
        (Kind::Duration { min: 1000 }, "1000", Ok(Value::Int(1000))),
        (
            Kind::Duration { min: 1000 },
            "5s",
            Ok(Value::Int(5_000_000_000)),
        ),
        (
            Kind::Duration { min: 0 },
            "5m",
            Err(InvalidValue::Malformed),
        ),
        (Kind::Millis, "10000", Ok(Value::Int(10_000))),
        (Kind::Millis, "10s", Err(InvalidValue::Malformed)),
        (Kind::Millis, "-1", Err(InvalidValue::OutOfRange)),
        (
            Kind::Int { min: 1, max: 256 },
            "900",
            Err(InvalidValue::OutOfRange),
        ),
        (Kind::Text { max: 3 }, "abcd", Err(InvalidValue::OutOfRange)),
        (
            Kind::Idle,
            "aeron_idle_strategy_noop",
            Ok(Value::Text("aeron_idle_strategy_noop".into())),
        ),
        (Kind::Idle, "nope", Err(InvalidValue::Malformed)),
        (Kind::Ports, "20700  20702", Ok(Value::Ports(20700, 20702))),
        (Kind::Ports, "2 1", Err(InvalidValue::OutOfRange)),
        (Kind::Ports, "1", Err(InvalidValue::Malformed)),
        (Kind::Ports, "1 70000", Err(InvalidValue::Malformed)),
        (Kind::Affinity, "auto", Ok(Value::Affinity(Affinity::Auto))),
        (Kind::Affinity, "-1", Ok(Value::Affinity(Affinity::None))),
        (Kind::Affinity, "7", Ok(Value::Affinity(Affinity::Core(7)))),
        (Kind::Affinity, "-2", Err(InvalidValue::OutOfRange)),
    ] {
        assert_eq!(kind.parse(text), expected, "{kind:?} {text}");
        if let Ok(value) = expected {
            assert_eq!(
                kind.parse(&kind.format(&value)),
                Ok(value),
                "{kind:?} {text}"
            );
        }
    }
}
