//! `payload-keys rotate`: a new key for what is stored encrypted (server.md §7).

use super::fault::Fault;
use super::output::{Output, message, plain};
use super::{Answer, Rotate};
use crate::config::Storage;
use crate::payload::Keys;

pub(super) fn rotate(arguments: &Rotate, output: &mut Output) -> Result<Answer, Fault> {
    let storage = Storage::resolve(&arguments.storage, &super::serve::environment)
        .map_err(|error| Fault::new(message(&error.to_string())))?;
    let file = storage.key_file;
    let id = Keys::rotate(&file).map_err(|fault| Fault::new(fault.to_string()))?;
    output.line(plain(&format!(
        "key {id} is the newest in {}; a server writes with it from its next start",
        file.display()
    )))?;
    output.line("keep the older keys: they open what they encrypted")?;
    Ok(Answer::Yes)
}
