//! `policy.out-of-bounds`: failure policies, time limits, pinned versions and the lengths of
//! free text (wire-format.md §7, G4, I3, G8).

use super::{report, shown};
use crate::code::Code;
use crate::graph::{FailurePolicy, Kind, Node};
use crate::limits::Limits;
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::Survey;

pub(super) fn check(survey: &Survey<'_>, issues: &mut Vec<Issue>) {
    for node in &survey.nodes {
        for (path, message) in of_node(node, survey.limits) {
            let location = Location::node_at(&node.id, path);
            report(issues, Code::PolicyOutOfBounds, location, message);
        }
    }
    for route in &survey.edges {
        if let Some(message) = too_long("label", route.edge.label.as_deref(), Limits::LABEL_CHARS) {
            let location = Location::edge_at(&route.edge.id, "/label");
            report(issues, Code::PolicyOutOfBounds, location, message);
        }
    }
}

type Finding = (&'static str, String);

fn of_node(node: &Node, limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    let texts = [
        ("/label", "label", &node.label, Limits::LABEL_CHARS),
        (
            "/description",
            "description",
            &node.description,
            Limits::DESCRIPTION_CHARS,
        ),
    ];
    for (path, what, text, most) in texts {
        findings.extend(too_long(what, text.as_deref(), most).map(|message| (path, message)));
    }
    match &node.kind {
        Kind::Agent(node) | Kind::AgentDecision(node) => {
            let (least, most) = Limits::AGENT_TIMEOUT_MS;
            findings.extend(outside("/timeoutMs", node.timeout_ms, least, most));
            let revision = node.agent.as_ref().and_then(|agent| agent.revision);
            findings.extend(outside("/agent/revision", revision, 1, Limits::COUNTER));
        }
        Kind::Action(node) => {
            let version = node
                .action
                .as_ref()
                .and_then(|action| action.contract_version);
            findings.extend(outside(
                "/action/contractVersion",
                version,
                1,
                Limits::COUNTER,
            ));
        }
        _ => {}
    }
    if let Some(policy) = node.kind.failure_policy() {
        of_policy(policy, limits, &mut findings);
    }
    findings
}

fn of_policy(policy: &FailurePolicy, limits: &Limits, findings: &mut Vec<Finding>) {
    let attempts = "/failurePolicy/maxAttempts";
    findings.extend(outside(attempts, policy.max_attempts, 1, limits.attempts));
    let codes = policy.retry_on.as_ref().map_or(0, Vec::len);
    if codes > Limits::RETRY_CODES {
        findings.push((
            "/failurePolicy/retryOn",
            format!(
                "The setting retryOn has {codes} codes; keep at most {}.",
                Limits::RETRY_CODES
            ),
        ));
    }
    let exhausted = "/failurePolicy/onExhausted";
    findings.extend(one_of(
        exhausted,
        policy.on_exhausted.as_deref(),
        "emit-failure",
        "fail-run",
    ));
    let Some(backoff) = &policy.backoff else {
        return;
    };
    let kind = "/failurePolicy/backoff/kind";
    findings.extend(one_of(
        kind,
        backoff.kind.as_deref(),
        "fixed",
        "exponential",
    ));
    let initial = "/failurePolicy/backoff/initialMs";
    findings.extend(outside(initial, backoff.initial_ms, 0, Limits::BACKOFF_MS));
    let least = backoff
        .initial_ms
        .and_then(|initial| u64::try_from(initial).ok());
    let least = least.unwrap_or_default().min(Limits::BACKOFF_MS);
    let maximum = "/failurePolicy/backoff/maximumMs";
    findings.extend(outside(
        maximum,
        backoff.maximum_ms,
        least,
        Limits::BACKOFF_MS,
    ));
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn outside(path: &'static str, value: Option<i64>, least: u64, most: u64) -> Option<Finding> {
    let value = value?;
    let fits = u64::try_from(value).is_ok_and(|value| (least..=most).contains(&value));
    (!fits).then(|| {
        (
            path,
            format!(
                "The setting {} is {value}; choose {least} to {most}.",
                name(path)
            ),
        )
    })
}

fn one_of(path: &'static str, value: Option<&str>, a: &str, b: &str) -> Option<Finding> {
    let value = value.filter(|value| *value != a && *value != b)?;
    Some((
        path,
        format!(
            "The setting {} is {:?}; write {a} or {b}.",
            name(path),
            shown(value)
        ),
    ))
}

fn too_long(what: &str, text: Option<&str>, most: usize) -> Option<String> {
    let count = text?.chars().count();
    (count > most).then(|| format!("The {what} has {count} characters; shorten it to {most}."))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validate::cases::{action, agent, around, found, sound};

    fn agent_with(change: impl Fn(&mut Value)) -> Vec<String> {
        let mut node = agent("a");
        change(&mut node);
        found(&around(node, "input", "success"))
    }

    fn at(path: &str) -> Vec<String> {
        vec![format!("policy.out-of-bounds node a {path}")]
    }

    #[test]
    fn s7_b056_bounds_of_a_failure_policy() {
        let policy = |member: &str, value: Value| {
            agent_with(|node| node["failurePolicy"][member] = value.clone())
        };
        for (member, bad, good) in [
            (
                "maxAttempts",
                vec![json!(0), json!(6), json!(-1)],
                vec![json!(1), json!(5)],
            ),
            (
                "retryOn",
                vec![json!(vec!["c"; 17])],
                vec![json!(vec!["c"; 16]), json!(["no.such.code"])],
            ),
            ("onExhausted", vec![json!("retry")], vec![json!("fail-run")]),
        ] {
            for value in bad {
                assert_eq!(
                    policy(member, value),
                    at(&format!("/failurePolicy/{member}"))
                );
            }
            for value in good {
                assert!(policy(member, value).is_empty(), "{member}");
            }
        }
    }

    #[test]
    fn s7_b056_bounds_of_a_backoff() {
        let backoff = |kind: &str, initial: i64, maximum: i64| {
            agent_with(|node| {
                node["failurePolicy"]["backoff"] =
                    json!({"kind": kind, "initialMs": initial, "maximumMs": maximum});
            })
        };
        assert_eq!(backoff("jitter", 0, 0), at("/failurePolicy/backoff/kind"));
        assert_eq!(
            backoff("fixed", 2, 1),
            at("/failurePolicy/backoff/maximumMs")
        );
        assert_eq!(
            backoff("fixed", 0, 3_600_001),
            at("/failurePolicy/backoff/maximumMs")
        );
        assert_eq!(
            backoff("fixed", -1, 5),
            at("/failurePolicy/backoff/initialMs")
        );
        assert_eq!(
            backoff("fixed", 3_600_001, 3_600_000),
            at("/failurePolicy/backoff/initialMs")
        );
        assert!(backoff("exponential", 3_600_000, 3_600_000).is_empty());
        assert!(backoff("fixed", 0, 0).is_empty());
    }

    #[test]
    fn g4_bounds_of_an_agents_time_limit() {
        for bad in [999, 3_600_001, -5] {
            assert_eq!(
                agent_with(|node| node["timeoutMs"] = json!(bad)),
                at("/timeoutMs")
            );
        }
        for good in [1_000, 3_600_000] {
            assert!(agent_with(|node| node["timeoutMs"] = json!(good)).is_empty());
        }
    }

    #[test]
    fn g8_pinned_versions_begin_with_1() {
        assert_eq!(
            agent_with(|node| node["agent"]["revision"] = json!(0)),
            at("/agent/revision")
        );
        let mut node = action("a");
        node["action"]["contractVersion"] = json!(-1);
        let issues = found(&around(node, "input", "success"));
        assert_eq!(issues, at("/action/contractVersion"));
    }

    #[test]
    fn i3_free_text_is_bounded_in_characters() {
        let mut graph = sound();
        graph["nodes"][0]["label"] = json!("ä".repeat(121));
        graph["nodes"][0]["description"] = json!("x".repeat(2_001));
        graph["edges"][0]["label"] = json!("x".repeat(121));
        let issues = [
            "policy.out-of-bounds node in /description",
            "policy.out-of-bounds node in /label",
            "policy.out-of-bounds edge e /label",
        ];
        assert_eq!(found(&graph), issues);
        graph["nodes"][0]["label"] = json!("ä".repeat(120));
        graph["nodes"][0]["description"] = json!("x".repeat(2_000));
        graph["edges"][0]["label"] = json!("😀".repeat(120));
        assert!(found(&graph).is_empty());
    }
}
