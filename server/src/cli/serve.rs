//! `config`: the server's settings in force (server.md §1).

use super::Answer;
use super::fault::Fault;
use super::output::Output;
use crate::config::{Arguments, Settings};

pub(super) fn config(arguments: &Arguments, output: &mut Output) -> Result<Answer, Fault> {
    let settings = settings(arguments)?;
    output.line(settings.to_string())?;
    Ok(Answer::Yes)
}

fn settings(arguments: &Arguments) -> Result<Settings, Fault> {
    let environment =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    Settings::resolve(arguments, &environment).map_err(|error| Fault::new(error.to_string()))
}
