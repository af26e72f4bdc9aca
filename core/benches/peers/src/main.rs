//! One compiled gate against the rule engines cel, zen-expression and datalogic-rs: the same
//! rule on the same document of 1 KB, which each has parsed into its own form beforehand
//! (wire-format.md §5). Every peer runs in the fastest form that its documentation names.
//!
//! Prints one JSON object a line, times in nanoseconds an evaluation; exit 1 where
//! `core.gate.vs-best-peer` misses its limit.

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cel::parser::Parser;
use datalogic_rs::{Engine, ParsedData};
use serde_json::{Value, json};
use sluicegate_core::gate::{Expr, Gate};
use sluicegate_core::value;
use zen_expression::vm::VM;
use zen_expression::{Scope, Variable, compile_expression};

/// How much faster than the fastest peer a gate must be.
const LIMIT: f64 = 1.5;
/// Each contender in turn, this often, so that what else the machine does meets all alike.
const ROUNDS: usize = 1_000;
/// How long one contender runs in a round: shorter than an operating system's turns.
const SLICE: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// The rule: an open or urgent claim over 1,000 in a known currency of a customer with a tax
/// number, and not blocked. The document fits, so no engine may stop early.
fn document() -> Value {
    let lines: Vec<Value> = (0..12)
        .map(|line| json!({"sku": format!("part-{line:04}"), "price": 12.5 + f64::from(line), "quantity": line}))
        .collect();
    json!({
        "id": "claim-000123", "amount": 1200.5, "currency": "USD", "status": "waiting", "priority": 4,
        "blocked": false, "customer": {"name": "Ada Example", "country": "DE", "tax": {"number": "DE123456789"}},
        "note": "Travel to the customer and back, two nights.", "lines": lines,
        "tags": ["travel", "europe", "2026"],
        "history": [{"at": "2026-01-01", "by": "a"}, {"at": "2026-02-01", "by": "b"}],
    })
}

fn measure() -> Result<bool, Box<dyn Error>> {
    let document = document();
    let text = value::canonical(&document);

    let gate = Expr::parse(
        &json!({"and": [
            {"gt": [{"read": "/amount"}, {"literal": 1000}]},
            {"in": [{"read": "/currency"}, {"literal": ["EUR", "USD"]}]},
            {"exists": "/customer/tax/number"},
            {"or": [{"eq": [{"read": "/status"}, {"literal": "open"}]},
                    {"ge": [{"read": "/priority"}, {"literal": 3}]}]},
            {"not": {"read": "/blocked"}},
        ]}),
        None,
    )
    .map_err(|faults| format!("{faults:?}"))?;
    let gate = Gate::from(gate);
    let input = value::read(&text)?;

    // cel walks its syntax tree over borrowed variables; `Program::execute` would also make an
    // owned result.
    let program = Parser::default().parse(
        "amount > 1000.0 && currency in ['EUR', 'USD'] && has(customer.tax.number) \
         && (status == 'open' || priority >= 3) && !blocked",
    )?;
    let mut context = cel::Context::default();
    for (name, member) in document.as_object().ok_or("an object")? {
        context
            .add_variable(name.as_str(), member)
            .map_err(|error| error.to_string())?;
    }

    // zen runs compiled bytecode on a machine and a scope that live on.
    let bytecode = compile_expression(
        "amount > 1000 and currency in ['EUR', 'USD'] and customer.tax.number != null \
         and (status == 'open' or priority >= 3) and not blocked",
    )?;
    let scope = Scope::new(Variable::from(document.clone()));
    let mut machine = VM::new();

    // datalogic passes parsed data through and gives a borrow of its session's arena.
    let engine = Engine::new();
    let logic = engine.compile(
        r#"{"and": [{">": [{"var": "amount"}, 1000]},
            {"in": [{"var": "currency"}, ["EUR", "USD"]]},
            {"!!": [{"var": "customer.tax.number"}]},
            {"or": [{"===": [{"var": "status"}, "open"]}, {">=": [{"var": "priority"}, 3]}]},
            {"!": [{"var": "blocked"}]}]}"#,
    )?;
    let parsed = ParsedData::from_json(&text)?;
    let mut session = engine.session();

    let mut contenders: [(&str, Box<dyn FnMut() -> bool + '_>); 4] = [
        (
            "core.gate",
            Box::new(|| gate.evaluate(black_box(&input)).unwrap_or(false)),
        ),
        (
            "peer.cel",
            Box::new(|| {
                cel::Value::resolve_val(black_box(&program), &context).is_ok_and(|truth| {
                    truth
                        .downcast_ref::<cel::common::types::CelBool>()
                        .is_some_and(|truth| *truth.inner())
                })
            }),
        ),
        (
            "peer.zen-expression",
            Box::new(|| {
                bytecode
                    .evaluate_with_scope(black_box(&scope), &mut machine)
                    .is_ok_and(|truth| truth.as_bool() == Some(true))
            }),
        ),
        (
            "peer.datalogic-rs",
            Box::new(|| {
                let truth = session
                    .eval_borrowed(black_box(&logic), &parsed)
                    .is_ok_and(|truth| truth.as_bool() == Some(true));
                session.reset();
                truth
            }),
        ),
    ];
    for (name, call) in &mut contenders {
        if !call() {
            return Err(format!("{name}: the document must fit the rule").into());
        }
    }

    let mut times = [const { Vec::new() }; 4];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = [0.0; 4];
        for ((_, call), (times, time)) in
            contenders.iter_mut().zip(times.iter_mut().zip(&mut round))
        {
            *time = nanoseconds(call);
            times.push(*time);
        }
        let [ours, peers @ ..] = round;
        ratios.push(peers.into_iter().fold(f64::INFINITY, f64::min) / ours);
    }
    for ((name, _), times) in contenders.iter().zip(&mut times) {
        print(name, median(times), "ns", None);
    }
    let ratio = median(&mut ratios);
    print("core.gate.vs-best-peer", ratio, "ratio", Some(LIMIT));
    print("core.gate.document", text.len() as f64, "bytes", None);
    Ok(ratio >= LIMIT)
}

/// The mean time of a call in one slice, in nanoseconds.
fn nanoseconds(call: &mut dyn FnMut() -> bool) -> f64 {
    let begun = Instant::now();
    let mut calls = 0u32;
    while begun.elapsed() < SLICE {
        for _ in 0..256 {
            black_box(call());
        }
        calls += 256;
    }
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn print(name: &str, value: f64, unit: &str, limit: Option<f64>) {
    let value = (value * 100.0).round() / 100.0;
    println!(
        "{}",
        json!({"name": name, "value": value, "unit": unit, "limit": limit})
    );
}
