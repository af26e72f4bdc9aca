//! Template text: tokens, the literal `{{`, and every fault at once (M3).

use std::collections::{BTreeMap, BTreeSet};

use super::{Part, text_of};
use crate::{
    code::Code,
    limits::Limits,
    value::{Map, Value},
};

/// Characters of a malformed token that a fault repeats.
const SHOWN: usize = 40;

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `template.syntax`, `template.variable-unknown` or `template.variable-unused`;
    /// `node.output-too-large` where a text was made.
    pub code: Code,
    /// The variable's name or what stands in the malformed token, at most 40 characters.
    pub name: String,
    /// What is wrong and what to do.
    pub message: String,
    /// Which declared variable is at fault, from 0; none for a fault of the text.
    pub variable: Option<usize>,
}

/// A scanned template: text and variable names in turn, no two texts side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Text as it is (`{{{{` already unescaped), never empty.
    Text(String),
    /// `{{ name }}`.
    Variable(String),
}

/// Scans a template once, left to right (M3): tokens `{{ name }}`, `{{{{` for a literal
/// `{{`. A `}}` outside a token is text. Every fault is reported, in order of place.
pub fn scan(template: &str) -> Result<Vec<Token>, Vec<Fault>> {
    let (tokens, faults) = scan_all(template);
    if faults.is_empty() {
        Ok(tokens)
    } else {
        Err(faults)
    }
}

/// Turns a template's text and its declared variables into parts, in order of the text. All
/// faults: `template.syntax` and `template.variable-unknown` (once a name) by place, then
/// `template.variable-unused` by declaration. A name that is declared twice is unused the
/// second time. While the syntax is wrong, nothing is called unused: the malformed token
/// may be its use.
pub fn compile_template(
    template: &str,
    variables: &[(String, Part)],
) -> Result<Vec<Part>, Vec<Fault>> {
    let names: Vec<_> = variables.iter().map(|(name, _)| name.as_str()).collect();
    let pieces = resolve(template, &names)?;
    let part = |piece| match piece {
        Piece::Text(text) => Some(Part::Text(text)),
        Piece::Variable(at) => variables.get(at).map(|(_, part)| part.clone()),
    };
    Ok(pieces.into_iter().filter_map(part).collect())
}

/// A token whose name is known to be declared.
enum Piece {
    Text(String),
    /// Which of the declared variables, from 0.
    Variable(usize),
}

fn resolve(template: &str, names: &[&str]) -> Result<Vec<Piece>, Vec<Fault>> {
    let (tokens, mut faults) = scan_all(template);
    let well_formed = faults.is_empty();
    let mut declared = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        declared.entry(*name).or_insert(at);
    }
    let mut pieces = Vec::with_capacity(tokens.len());
    let (mut used, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for token in tokens {
        match token {
            Token::Text(text) => pieces.push(Piece::Text(text)),
            Token::Variable(name) => match declared.get(name.as_str()) {
                Some(at) => {
                    pieces.push(Piece::Variable(*at));
                    used.insert(*at);
                }
                None if unknown.contains(&name) => {}
                None => {
                    faults.push(Fault {
                        code: Code::TemplateVariableUnknown,
                        message: format!(
                            "the variable {} is not declared; declare it or write {{{{{{{{ for a literal {{{{",
                            shown(&name)
                        ),
                        name: shown(&name),
                        variable: None,
                    });
                    unknown.insert(name);
                }
            },
        }
    }
    if well_formed {
        for (at, name) in names.iter().enumerate() {
            if declared.get(name) != Some(&at) {
                faults.push(unused(at, name, "is declared twice"));
            } else if !is_name(name) {
                faults.push(unused(
                    at,
                    name,
                    "cannot be used: a name is [A-Za-z_][A-Za-z0-9_.]*",
                ));
            } else if !used.contains(&at) {
                faults.push(unused(at, name, "is declared but not used"));
            }
        }
    }
    if faults.is_empty() {
        Ok(pieces)
    } else {
        Err(faults)
    }
}

/// The text of a template whose variables are given as plain values by name; the same
/// faults as [`compile_template`], and `node.output-too-large` for a text that no envelope
/// could hold.
pub fn render_template(
    template: &str,
    variables: &Map<String, Value>,
) -> Result<String, Vec<Fault>> {
    let names: Vec<_> = variables.keys().map(String::as_str).collect();
    let pieces = resolve(template, &names)?;
    let texts: Vec<_> = variables.values().map(text_of).collect();
    let most = Limits::default().envelope_bytes;
    let mut text = String::new();
    for piece in &pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Variable(at) => text.push_str(texts.get(*at).map_or("", |text| text)),
        }
        if text.len() as u64 > most {
            return Err(vec![Fault {
                code: Code::NodeOutputTooLarge,
                name: String::new(),
                message: format!("a template's text has more than {most} bytes"),
                variable: None,
            }]);
        }
    }
    Ok(text)
}

fn unused(at: usize, name: &str, why: &str) -> Fault {
    let name = shown(name);
    Fault {
        code: Code::TemplateVariableUnused,
        message: format!("the variable {name} {why}"),
        name,
        variable: Some(at),
    }
}

/// Whether `name` has the form of a variable's name.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Tokens and faults of a whole template. Every step goes past what it looked at, so the
/// time is linear whatever the text.
fn scan_all(template: &str) -> (Vec<Token>, Vec<Fault>) {
    let (mut tokens, mut faults) = (Vec::new(), Vec::new());
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, inside)) = rest.split_once("{{") {
        text.push_str(before);
        if let Some(after) = inside.strip_prefix("{{") {
            text.push_str("{{");
            rest = after;
            continue;
        }
        match close(inside) {
            Close::Token(name, after) if is_name(name) => {
                if !text.is_empty() {
                    tokens.push(Token::Text(std::mem::take(&mut text)));
                }
                tokens.push(Token::Variable(name.to_owned()));
                rest = after;
            }
            Close::Token(content, after) => {
                faults.push(syntax(
                    content,
                    "is not a name: letters, digits, `_` and `.`, not beginning with a digit or `.`",
                ));
                rest = after;
            }
            Close::Missing(content, after) => {
                faults.push(syntax(content, "is not closed with }}"));
                rest = after;
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        tokens.push(Token::Text(text));
    }
    (tokens, faults)
}

/// How an opened token ends.
enum Close<'t> {
    /// With `}}`: what stands inside, without spaces around it, and the text behind.
    Token(&'t str, &'t str),
    /// Not before the next `{{` or the end: what stands inside, and where to go on.
    Missing(&'t str, &'t str),
}

fn close(inside: &str) -> Close<'_> {
    let end = inside
        .as_bytes()
        .windows(2)
        .position(|pair| pair == b"}}" || pair == b"{{")
        .unwrap_or(inside.len());
    // Both marks are ASCII, so `end` is a character boundary.
    let (content, after) = inside.split_at_checked(end).unwrap_or((inside, ""));
    let content = content.trim_matches(' ');
    match after.strip_prefix("}}") {
        Some(after) => Close::Token(content, after),
        None => Close::Missing(content, after),
    }
}

fn syntax(content: &str, why: &str) -> Fault {
    let name = shown(content);
    Fault {
        code: Code::TemplateSyntax,
        message: format!("the token {name:?} {why}; a literal {{{{ is written {{{{{{{{"),
        name,
        variable: None,
    }
}
