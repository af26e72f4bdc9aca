//! `check` and `dry-run`: what is wrong with a graph, and what would run (server.md §2).

use serde::Serialize;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::compile::{self, DryRunReport, ReferenceKind};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::validate::{self, Issue};

use super::fault::Fault;
use super::output::{Files, MOST_LISTED, Output, beyond, name, plain};
use super::{Answer, Check, DryRun, Subject, input};

#[derive(Serialize)]
struct Judged<'a> {
    valid: bool,
    issues: &'a [Issue],
}

pub(super) fn check(arguments: &Check, output: &mut Output) -> Result<Answer, Fault> {
    let (graph, catalogue) = subject(&arguments.subject, &[])?;
    let issues = validate::check(&graph, catalogue.as_ref(), &Limits::default());
    let valid = !issues.iter().any(Issue::is_error);
    if arguments.json {
        let issues = &issues;
        output.json(&Judged { valid, issues })?;
    } else {
        output.issues(&issues, None)?;
    }
    Ok(if valid { Answer::Yes } else { Answer::No })
}

pub(super) fn dry_run(arguments: &DryRun, output: &mut Output) -> Result<Answer, Fault> {
    let (graph, catalogue) = subject(&arguments.subject, &[arguments.input.as_ref()])?;
    let sample = arguments.input.as_deref().map(input::read).transpose()?;
    let permissions = catalogue
        .as_ref()
        .and_then(|catalogue| catalogue.permissions.as_deref());
    let report = compile::dry_run(
        &graph,
        sample.as_ref().map(|document| &document.value),
        catalogue.as_ref(),
        permissions,
        &Limits::default(),
    );
    if arguments.json {
        output.json(&report)?;
    } else {
        let files = Files {
            graph: input::name(&arguments.subject.graph),
            input: sample.map(|document| document.name).unwrap_or_default(),
        };
        people(&report, &files, output)?;
    }
    Ok(if report.valid {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn people(report: &DryRunReport, files: &Files, output: &mut Output) -> Result<(), Fault> {
    let order: Vec<_> = report.compiled_order.iter().map(|id| id.as_str()).collect();
    // A graph with faults has no order.
    if !order.is_empty() {
        output.line(format!("order: {}", plain(&order.join(" → "))))?;
    }
    for reference in report.references.iter().take(MOST_LISTED) {
        let there = if reference.available {
            ""
        } else {
            " (not available)"
        };
        output.line(plain(&format!(
            "uses {} {} {}{there}",
            kind(reference.kind),
            name(&reference.id),
            name(&reference.version)
        )))?;
    }
    if let Some(more) = beyond(report.references.len()) {
        output.line(more)?;
    }
    for permission in report.required_permissions.iter().take(MOST_LISTED) {
        let permission = name(permission.as_str());
        output.line(plain(&format!("needs the permission {permission}")))?;
    }
    if let Some(more) = beyond(report.required_permissions.len()) {
        output.line(more)?;
    }
    output.issues(&report.issues, Some(files))
}

fn kind(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Action => "action",
        ReferenceKind::Agent => "agent",
        ReferenceKind::Schema => "schema",
    }
}

/// Reads a graph and its catalogue; `more` are the other files of the command line.
pub(super) fn subject(
    subject: &Subject,
    more: &[Option<&std::path::PathBuf>],
) -> Result<(Graph, Option<Catalogue>), Fault> {
    let mut paths = vec![Some(&subject.graph), subject.catalogue.as_ref()];
    paths.extend(more);
    input::one_from_standard_input(&paths)?;
    let graph = input::graph(&subject.graph)?;
    let catalogue = subject
        .catalogue
        .as_deref()
        .map(input::catalogue)
        .transpose()?;
    Ok((graph, catalogue))
}
