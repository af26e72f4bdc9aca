use std::path::Path;

use super::table::{AUDIT, RUNS, TABLES};

#[test]
fn every_statement_names_the_tenant() {
    // Claims go through the tenants one after the other; a hash finds its own tenant; the
    // start looks at all keys and all leases.
    let exempt = [
        "select tenant_id from tenants",
        "update workflow_runs set lease_void = 1",
        // Of a table's own columns, which begin with the tenant; see below.
        "insert or fail into {} ({}) values",
        "select key_id from workflow_payloads",
        "pragma user_version",
        "schema_migrations",
        "clock_timestamp()",
        "select now_ms()",
        "select pg_",
        // Of a table's own columns, as above.
        "insert into {} ({names}) select",
        // The beginning of one that goes on elsewhere.
        "update workflow_runs set",
        "update api_keys set last_used_at",
        "from api_keys k join accounts",
        "update sign_in_links set spent_at",
        "from sessions s join accounts",
        "update sessions set idle_until",
        "delete from sessions where token_hash",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let files = ["sqlite", "postgres"]
        .into_iter()
        .flat_map(|database| std::fs::read_dir(folder.join(database)).unwrap());
    let mut statements = 0;
    for file in files {
        let path = file.unwrap().path();
        // A folder holds what tests one file.
        if path.is_dir() || path.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap().replace("\\\"", "'");
        for literal in text.split('"').skip(1).step_by(2) {
            let words = ["select ", "insert ", "update ", "delete "];
            if !words
                .iter()
                .any(|word| literal.trim_start().starts_with(word))
            {
                continue;
            }
            statements += 1;
            let squeezed = literal.split_whitespace().collect::<Vec<_>>().join(" ");
            let names = squeezed.contains("tenant_id");
            let spared = exempt.iter().any(|part| squeezed.contains(part));
            assert!(names || spared, "{}: {squeezed}", path.display());
        }
    }
    assert!(statements > 90, "the statements were not found");
    for table in TABLES.iter().chain([&AUDIT, &RUNS]) {
        assert_eq!(table.columns[0].0, "tenant_id", "{}", table.name);
    }
}
