// SPDX-License-Identifier: Apache-2.0
//! Memory use is proportional to the size of the schema, even if names of enclosing elements or details of types are
//! repeated for many elements.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use taran_sbe::compile;
use taran_sbe::describe::describe;
use taran_sbe::diff::diff;
use taran_sbe::model::Schema;
use taran_sbe::xml::NoFiles;

thread_local! {
    // Per thread, because tests run concurrently.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    // The counter of a thread that ends may already be destroyed; its last deallocations are not counted.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.try_with(|peak| peak.set(peak.get().max(held.get())))
    });
}

// SAFETY: every call is forwarded unchanged to the system allocator. Counting does not allocate, because the cells have
// constant initial values and no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller upholds the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `act` and returns its result and the peak of additionally held bytes.
fn peak<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let done = act();
    (done, usize::try_from(PEAK.get() - before).unwrap())
}

/// Fixed allowance in bytes, and allowance per byte of the schema.
const ANYWAY: usize = 64 << 20;
const PER_BYTE: usize = 100;

fn holds_to_it(what: &str, length: usize, taken: usize) {
    let most = ANYWAY + PER_BYTE * length;
    assert!(
        taken <= most,
        "{what} of {length} bytes took {taken}, more than {most}"
    );
}

fn text(types: &str, messages: &str) -> String {
    format!(
        r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="a.b" id="7" version="3">
        <types>
            <composite name="messageHeader">
                <type name="blockLength" primitiveType="uint32"/><type name="templateId" primitiveType="uint16"/>
                <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
            </composite>
            <composite name="groupSizeEncoding">
                <type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/>
            </composite>
            <composite name="bytes"><type name="length" primitiveType="uint16"/>
                <type name="varData" primitiveType="uint8" length="0"/></composite>
            {types}
        </types>
        {messages}</sbe:messageSchema>"#
    )
}

/// Compiles a schema and checks the memory use of compilation, layout table and comparison with itself.
fn compiled(types: &str, messages: &str) -> Schema {
    let text = text(types, messages);
    let (compiled, taken) = peak(|| compile("", &NoFiles(&text)).unwrap());
    holds_to_it("to compile", text.len(), taken);
    let schema = compiled.schema;
    let (_, taken) = peak(|| describe(&schema).to_string().len());
    holds_to_it("to describe", text.len(), taken);
    let (changes, taken) = peak(|| diff(&schema, &schema));
    assert_eq!(changes, []);
    holds_to_it("to compare", text.len(), taken);
    schema
}

fn many(count: usize, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect()
}

/// Nests elements whose names have the maximum length.
fn nested(element: &str, depth: usize, inside: &str) -> String {
    let name = "n".repeat(250);
    let begin = many(depth, |at| {
        format!(r#"<{element} name="{name}{at}" id="1">"#)
    });
    format!("{begin}{inside}{}", format!("</{element}>").repeat(depth))
}

fn in_groups(inside: &str) -> String {
    let groups = nested("group", 31, inside);
    format!(r#"<message name="M" id="1">{groups}</message>"#)
}

#[test]
fn nested_names_use_bounded_memory() {
    for count in [900, 4_000] {
        let data = |at| format!(r#"<data name="d{at}" id="{at}" type="bytes"/>"#);
        compiled("", &in_groups(&many(count, data)));
        let group = |at| format!(r#"<group name="g{at}" id="{at}"/>"#);
        compiled("", &in_groups(&many(count, group)));
        let kind = |at| format!(r#"<enum name="e{at}" encodingType="uint8"/>"#);
        let types = nested("composite", 30, &many(count, kind));
        compiled(
            &types.replace(" id=\"1\"", ""),
            r#"<message name="M" id="1"/>"#,
        );
    }
}

#[test]
fn describe_repeated_type_details_use_bounded_memory() {
    let long = "x".repeat(4_096);
    let field = |at| format!(r#"<field name="f{at}" id="{at}" type="T"/>"#);
    let fields = format!(
        r#"<message name="M" id="1">{}</message>"#,
        many(20_000, field)
    );
    compiled(
        &format!(r#"<type name="T" primitiveType="uint8" description="{long}"/>"#),
        &fields,
    );
    // The details of a member are repeated for each field.
    let own = many(100, |at| {
        format!(r#"<type name="m{at}" primitiveType="uint8" description="{long}"/>"#)
    });
    compiled(
        &format!(r#"<composite name="T">{own}</composite>"#),
        &fields,
    );
    let constant = format!(
        r#"<type name="K" primitiveType="char" presence="constant">{}</type>"#,
        "x".repeat(1_024)
    );
    compiled(&constant.replace('K', "T"), &fields);
    // Characters that tables show as escapes of four characters.
    let shown = constant
        .replace('K', "T")
        .replace("char\"", "char\" characterEncoding=\"ISO-8859-1\"");
    compiled(
        &shown.replace(&"x".repeat(1_024), &("é".repeat(1_023) + "x")),
        &fields,
    );
    // Null values of hundreds of digits.
    compiled(
        r#"<type name="T" primitiveType="double" presence="optional" nullValue="5e-324"/>"#,
        &fields,
    );
    // Values that constants refer to by name.
    let name = "v".repeat(120);
    compiled(
        &format!(
            r#"<enum name="{name}" encodingType="uint8"><validValue name="{name}">1</validValue></enum>
               <type name="T" primitiveType="uint8" presence="constant" valueRef="{name}.{name}"/>"#
        ),
        &fields,
    );
    let refs = many(512, |at| format!(r#"<ref name="m{at}" type="K"/>"#));
    compiled(
        &format!(r#"{constant}<composite name="T">{refs}</composite>"#),
        &fields,
    );
}

#[test]
fn describe_repeated_composites_use_bounded_memory() {
    let long = "n".repeat(250);
    let field = |at| format!(r#"<field name="f{at}" id="{at}" type="T"/>"#);
    let member = |at| format!(r#"<type name="m{at}" primitiveType="uint8"/>"#);
    let composite = format!(r#"<composite name="T">{}</composite>"#, many(512, member));
    for (name, fields) in [("a", 512), (&long, 512), (&long, 10_000)] {
        let fields = many(fields, field);
        // A long name does not widen other lines.
        compiled(
            &composite,
            &format!(
                r#"<message name="M" id="1"><field name="{name}" id="60000" type="uint8"/>{fields}</message>"#
            ),
        );
    }
}

#[test]
fn diff_long_paths_use_bounded_memory() {
    let of = |prefix: &str| {
        let data = |at| format!(r#"<data name="{prefix}{at}" id="{at}" type="bytes"/>"#);
        let text = text("", &in_groups(&many(4_000, data)));
        (compile("", &NoFiles(&text)).unwrap().schema, text.len())
    };
    let ((old, one), (new, two)) = (of("a"), of("b"));
    let (changes, taken) = peak(|| diff(&old, &new));
    holds_to_it("to compare", one + two, taken);
    let last = changes.last().unwrap();
    assert!((100..4_000).contains(&changes.len()), "{}", changes.len());
    let expected = format!(
        "further changes are not reported; the limit of {} was reached",
        changes.len() - 1
    );
    assert_eq!(last.what, expected);
}
