//! The `scripted` provider (server.md §6): it answers from the rules of its definition,
//! without a network, always the same. samples/README.md says what rules mean.

use std::time::Duration;

use sluicegate_core::code::Code;
use sluicegate_core::gate::Expr;
use sluicegate_core::mapping::{Token, scan};
use sluicegate_core::value::{self, Map, Value};

use super::{Question, Reply, Rule, Then};

/// Finds what is wrong with rules before they are stored.
pub(super) fn judge(rules: &[Rule]) -> Result<(), String> {
    for (index, rule) in rules.iter().enumerate() {
        if let Err(faults) = Expr::parse(&rule.when, None) {
            let first = faults.first().map_or("", |fault| &fault.message);
            return Err(format!("rule {}: {first}", index + 1));
        }
    }
    Ok(())
}

/// The first rule that fits answers.
pub(super) fn answer(rules: &[Rule], question: &Question) -> Reply {
    let input = seen(&question.input);
    let fits = |rule: &&Rule| {
        rule.attempt
            .is_none_or(|attempt| attempt == question.attempt)
            && Expr::parse(&rule.when, None)
                .is_ok_and(|when| when.evaluate(&input).unwrap_or(false))
    };
    let Some(rule) = rules.iter().find(fits) else {
        return Reply {
            answer: Err(declined()),
            usage: None,
            delay: Duration::ZERO,
        };
    };
    let answer = match &rule.then {
        Then::Text(text) => fill_text(text, &input).map(Value::String),
        Then::Json(value) => fill(value, &input),
        Then::Failure { code, message } => Err((
            code.clone(),
            message.clone().unwrap_or_else(|| code.clone()),
        )),
    };
    Reply {
        answer,
        usage: rule.usage,
        delay: Duration::from_millis(rule.delay_ms),
    }
}

fn declined() -> (String, String) {
    let text = "no rule of the scripted agent fits this input";
    (Code::AgentDeclined.as_str().to_owned(), text.to_owned())
}

/// What rules see: the object or array that the text says, otherwise the text.
fn seen(text: &str) -> Value {
    match value::read(text) {
        Ok(seen @ (Value::Object(_) | Value::Array(_))) => seen,
        _ => Value::String(text.to_owned()),
    }
}

type Filled<T> = Result<T, (String, String)>;

fn fill(value: &Value, input: &Value) -> Filled<Value> {
    Ok(match value {
        Value::String(text) => match tokens(text)?.as_slice() {
            // A string that is nothing but one token becomes the value itself.
            [Token::Variable(name)] => look_up(name, input)?.clone(),
            _ => Value::String(fill_text(text, input)?),
        },
        Value::Array(items) => {
            let filled: Filled<Vec<Value>> = items.iter().map(|item| fill(item, input)).collect();
            Value::Array(filled?)
        }
        Value::Object(members) => {
            let mut filled = Map::new();
            for (name, member) in members {
                filled.insert(name.clone(), fill(member, input)?);
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, input: &Value) -> Filled<String> {
    let mut filled = String::new();
    for token in tokens(text)? {
        match token {
            Token::Text(text) => filled.push_str(&text),
            Token::Variable(name) => match look_up(&name, input)? {
                Value::String(text) => filled.push_str(text),
                other => filled.push_str(&value::canonical(other)),
            },
        }
    }
    Ok(filled)
}

fn tokens(text: &str) -> Filled<Vec<Token>> {
    scan(text).map_err(|faults| {
        let message = faults.into_iter().next().map(|fault| fault.message);
        invalid(message.unwrap_or_default())
    })
}

/// `input` is the whole input, `input.a.b` a member of it.
fn look_up<'v>(name: &str, input: &'v Value) -> Filled<&'v Value> {
    let mut segments = name.split('.');
    let mut found = (segments.next() == Some("input")).then_some(input);
    for segment in segments {
        found = found.and_then(|value| value.get(segment));
    }
    found.ok_or_else(|| invalid(format!("the input has no {name}")))
}

fn invalid(message: String) -> (String, String) {
    (Code::AgentOutputInvalid.as_str().to_owned(), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(text: Value) -> Vec<Rule> {
        serde_json::from_value(text).unwrap()
    }

    fn ask(rules: &[Rule], input: &str, attempt: u32) -> Result<Value, String> {
        let question = Question {
            input: input.to_owned(),
            attempt,
        };
        answer(rules, &question).answer.map_err(|(code, _)| code)
    }

    #[test]
    fn the_first_rule_that_fits_answers() {
        let rules = rules(json!([
            {"when": {"eq": [{"read": "/n"}, {"literal": 1}]}, "attempt": 1,
             "then": {"failure": {"code": "agent.rate-limited"}}},
            {"when": {"eq": [{"read": "/n"}, {"literal": 1}]}, "then": {"json": {"n": "{{ input.n }}"}}},
            {"when": {"eq": [{"read": ""}, {"literal": "hello"}]}, "then": {"text": "> {{ input }}"}}
        ]));
        assert_eq!(
            ask(&rules, r#"{"n":1}"#, 1),
            Err("agent.rate-limited".to_owned())
        );
        assert_eq!(ask(&rules, r#"{"n":1}"#, 2), Ok(json!({"n": 1})));
        assert_eq!(ask(&rules, "hello", 1), Ok(json!("> hello")));
        assert_eq!(
            ask(&rules, r#"{"m":1}"#, 1),
            Err("agent.declined".to_owned())
        );
        assert_eq!(ask(&rules, "3", 1), Err("agent.declined".to_owned()));
    }

    #[test]
    fn a_token_alone_is_the_value_and_within_text_is_text() {
        let rules = rules(json!([{"when": {"literal": true}, "then": {"json": {
            "whole": "{{ input.a.b }}", "within": "b = {{ input.a.b }}", "plain": "{{{{"}}}]));
        assert_eq!(
            ask(&rules, r#"{"a":{"b":[1,2]}}"#, 1),
            Ok(json!({"whole": [1, 2], "within": "b = [1,2]", "plain": "{{"}))
        );
        assert_eq!(
            ask(&rules, r#"{"a":1}"#, 1),
            Err("agent.output-invalid".to_owned())
        );
    }

    #[test]
    fn rules_that_cannot_be_read_are_named() {
        let wrong = rules(json!([{"when": {"is": 1}, "then": {"text": "x"}}]));
        assert!(judge(&wrong).unwrap_err().starts_with("rule 1: "));
    }
}
