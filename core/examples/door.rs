//! Answers calls of the npm package's functions natively, one a line: `{"when", "given"}` comes in, the
//! canonical `{"gives"}` or `{"throws"}` goes out. tests/npm compares the two builds with it (B127).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

#[path = "../tests/door/mod.rs"]
mod door;

use serde_json::json;
use sluicegate_core::value;

fn main() {
    for line in std::io::stdin().lines() {
        let asked = value::read(&line.unwrap()).unwrap();
        let given = asked["given"].as_array().unwrap();
        let outcome = match door::call(asked["when"].as_str().unwrap(), given) {
            Ok(gives) => json!({ "gives": gives }),
            Err(door::Thrown(code, pointer)) => {
                let mut throws = json!({ "code": code.as_str() });
                if let Some(pointer) = pointer {
                    throws["pointer"] = pointer.into();
                }
                json!({ "throws": throws })
            }
        };
        println!("{}", value::canonical(&value::to_answer(&outcome).unwrap()));
    }
}
