//! The doors without a plan: values, gates, templates, schemas, audit chains.

use serde_json::{Map, Value, json};
use sluicegate_core::api::{CancelRequest, EnqueueRequest, SimulateRequest};
use sluicegate_core::audit::{self, Entry, Head};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Code;
use sluicegate_core::evidence::{self, Secrets};
use sluicegate_core::gate::Expr;
use sluicegate_core::ids::{Hash, PayloadId, SchemaId};
use sluicegate_core::limits::Limits;
use sluicegate_core::mapping;
use sluicegate_core::schema::{self, Compatibility, Reach, Schema, compare};
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::value::{self, Pointer};

use super::{document, member, refused};

/// J2, J3, J4: reading what was written gives the same; pointers read or refuse; shapes refuse.
pub(crate) fn value(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let text = value::canonical(&document);
    assert_eq!(value::canonical_len(&document), text.len());
    let again = value::read(&text).unwrap();
    assert_eq!(again, document, "what was written reads as it was");
    assert_eq!(value::canonical(&again), text);
    let mut normal = document.clone();
    value::normalise(&mut normal).unwrap();
    assert_eq!(normal, document, "what was read is normal");
    assert_eq!(value::hash(&document), Hash::of(text.as_bytes()));

    let whole = member(&document, "value");
    match Pointer::parse(member(&document, "pointer").as_str().unwrap_or_default()) {
        Ok(pointer) => {
            let _ = pointer.read(whole);
            assert_eq!(Pointer::parse(&pointer.to_string()).unwrap(), pointer);
        }
        Err(error) => assert_eq!(error.code, Code::JsonPointerInvalid),
    }
    let shapes = [
        Catalogue::read(whole).err(),
        Fixtures::read(whole).err(),
        EnqueueRequest::read(whole).err(),
        SimulateRequest::read(whole).err(),
        CancelRequest::read(whole).err(),
    ];
    shapes.iter().flatten().for_each(refused);
    true
}

/// L1–L6: an expression is refused with codes of gates or evaluates, the same with a schema.
pub(crate) fn gate(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let expr = member(&document, "expr");
    let seen = document
        .get("schema")
        .and_then(|schema| Schema::accept(schema).ok());
    if let Err(faults) = Expr::parse(expr, seen.as_ref()) {
        assert!(!faults.is_empty());
        for fault in faults {
            assert!(fault.code.as_str().starts_with("gate."), "{fault:?}");
            assert!(
                Pointer::parse(&fault.pointer).unwrap().read(expr).is_some(),
                "{fault:?}"
            );
        }
    }
    let evaluated = Expr::parse(expr, None).map(|expr| expr.evaluate(member(&document, "input")));
    if let Ok(Err(error)) = &evaluated {
        let known = [Code::GatePathMissing, Code::GateTypeMismatch];
        assert!(known.contains(&error.code), "{error:?}");
    }
    evaluated.is_ok()
}

/// M3: a template renders or is refused; a value is inserted once and never scanned again.
pub(crate) fn template(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let Some(template) = member(&document, "template").as_str() else {
        return false;
    };
    let none = Map::new();
    let variables = member(&document, "variables").as_object().unwrap_or(&none);
    let rendered = mapping::render_template(template, variables);
    let is_whole = rendered.is_ok();
    match rendered {
        Ok(text) => {
            let marked: Map<String, Value> = variables
                .keys()
                .map(|name| (name.clone(), json!("{{ a }}")))
                .collect();
            match mapping::render_template(template, &marked) {
                Ok(marked) => assert!(template.contains("{{") || marked == text),
                Err(faults) => assert_eq!(faults[0].code, Code::NodeOutputTooLarge),
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                let of_text = fault.code == Code::NodeOutputTooLarge;
                assert!(
                    of_text || fault.code.as_str().starts_with("template."),
                    "{fault:?}"
                );
            }
        }
    }
    is_whole
}

/// S1–S6: an accepted schema validates, compares, gives examples that fit, and hides secrets.
pub(crate) fn schema(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let (source, other) = (member(&document, "schema"), member(&document, "other"));
    let schema = match Schema::accept(source) {
        Ok(schema) => schema,
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!(fault.code.as_str().starts_with("schema."), "{fault:?}");
                Pointer::parse(&fault.pointer).unwrap();
            }
            return false;
        }
    };
    let failures = schema.validate(other);
    assert_eq!(
        failures.is_empty(),
        schema.is_valid(other),
        "the list agrees with the verdict"
    );
    assert_eq!(schema.first_failure(other).is_none(), failures.is_empty());
    assert!(
        failures.is_sorted_by_key(|failure| (&failure.path, &failure.keyword)),
        "{failures:?}"
    );
    if let Some(example) = schema.example() {
        assert!(schema.is_valid(&example), "{example} is no example");
        hides(&schema, &example);
    }
    if failures.is_empty() {
        hides(&schema, other);
    }
    let name = json!([other]).to_string();
    for pointer in ["", "/a", "/0/b", "/a/a/a"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("/{}", value::escape(&name))])
    {
        let pointer = Pointer::parse(&pointer).unwrap();
        let reach = schema.reach(&pointer);
        let read = failures.is_empty().then(|| pointer.read(other));
        match (reach, read) {
            (Reach::Impossible, Some(Some(_))) => panic!("{other} has the impossible {pointer}"),
            (Reach::Certain(_), Some(None)) => panic!("{other} lacks the certain {pointer}"),
            _ => {}
        }
    }
    assert_ne!(
        compare(&schema, &schema),
        Compatibility::Incompatible,
        "unless nothing fits"
    );
    for id in schema::BUILT_IN {
        let target = schema::built_in(id).unwrap();
        let verdict = compare(&schema, &target);
        if failures.is_empty() {
            match verdict {
                Compatibility::Compatible => assert!(target.is_valid(other), "{id} fits {other}"),
                Compatibility::Incompatible => {
                    assert!(!target.is_valid(other), "{id} refuses {other}")
                }
                Compatibility::Unknown => {}
            }
        }
    }
    if let Ok(target) = Schema::accept(other) {
        let verdict = compare(&schema, &target);
        if let Some(example) = schema.example() {
            assert!(
                verdict != Compatibility::Incompatible || !target.is_valid(&example),
                "{example} fits both"
            );
            assert!(
                verdict != Compatibility::Compatible || target.is_valid(&example),
                "{example} fits one"
            );
        }
    }
    true
}

/// S5, A6: evidence of any value that fits is within its bounds and can be read again.
fn hides(schema: &Schema, value: &Value) {
    let mut secrets = Secrets::default();
    secrets.learn(schema, value);
    let (payload, id) = (PayloadId::from("a/1/data"), SchemaId::from("s"));
    let made = evidence::make(payload, id, schema, value, &secrets, u64::MAX);
    if let Some(preview) = &made.preview {
        let most = usize::try_from(Limits::ONE_PREVIEW_BYTES).unwrap();
        assert!(value::canonical_len(preview) <= most, "a preview is small");
    }
    let stored = value::to_value(&made.evidence).unwrap();
    let again: evidence::Evidence = serde_json::from_value(stored).unwrap();
    assert_eq!(again, made.evidence);
}

/// H1–H3: any chain, head and events are judged; a break has a place and a reason.
pub(crate) fn audit(input: &[u8]) -> bool {
    let Some(document) = document(input) else {
        return false;
    };
    let none = Vec::new();
    let entries = member(&document, "entries").as_array().unwrap_or(&none);
    let head: Option<Head> =
        serde_json::from_value(member(&document, "head").clone()).unwrap_or_default();
    let events = document
        .get("events")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let verified = audit::verify(entries, head, events);
    assert_eq!(verified.valid, verified.reason.is_none());
    assert_eq!(verified.valid, verified.first_broken_sequence.is_none());
    for entry in entries {
        if let Ok(entry) = serde_json::from_value::<Entry>(entry.clone()) {
            let _ = entry.content_hash();
        }
    }
    let events = events.unwrap_or(&none);
    let _ = (audit::of_decision(events), audit::events_hash(events));
    !entries.is_empty()
}
