//! Everything that is wrong is told at once, each with its place.

use crate::problems;

#[test]
fn all_errors_come_in_one_run_with_line_and_column() {
    let found = problems(
        r#"<type name="A" primitiveType="uint9"/>
<type name="B" primitiveType="uint8" nullValue="9"/>
  <enum name="C" encodingType="uint8"><validValue name="X">300</validValue></enum>"#,
        r#"<sbe:message name="M" id="1"><field name="f" id="1" type="Nowhere"/></sbe:message>"#,
    );
    let told: Vec<_> = found
        .iter()
        .map(|found| {
            let text = found.to_string();
            // The name of a text that is no file is empty.
            text.trim_start_matches(':').to_owned()
        })
        .collect();
    assert_eq!(
        told,
        [
            "19:16: error: primitiveType=\"uint9\" is not char, int8, int16, int32, int64, uint8, uint16, uint32, \
             uint64, float or double",
            "20:38: warning: nullValue is given, but presence is not optional",
            "21:39: error: X=\"300\" is not a value of uint8",
            "23:30: error: there is no type Nowhere",
        ]
    );
}
