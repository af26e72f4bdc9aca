use super::*;
use std::path::Path;

fn keys(folder: &Path) -> Keys {
    Keys::open(&folder.join("keys")).unwrap()
}

fn place<'a>(tenant: &'a TenantId, run_id: &'a RunId, payload: &'a str) -> Place<'a> {
    Place {
        tenant,
        run_id,
        payload,
    }
}

#[test]
fn s7_a_value_opens_only_at_its_own_place() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    let (tenant, run, other) = (TenantId::from("t"), RunId::from("r"), RunId::from("r2"));
    let plain = serde_json::json!({"amount": 1, "note": "é"});
    let (id, sealed) = keys
        .seal(place(&tenant, &run, "a/1/input"), &plain)
        .unwrap();
    let open = |place: Place<'_>| keys.open_sealed(place, &id, &sealed);
    assert_eq!(open(place(&tenant, &run, "a/1/input")), Ok(plain));
    for wrong in [
        place(&tenant, &other, "a/1/input"),
        place(&tenant, &run, "a/1/data"),
        place(&TenantId::from("u"), &run, "a/1/input"),
    ] {
        assert_eq!(open(wrong), Err(Unreadable::Broken));
    }
    let mut changed = sealed.clone();
    *changed.last_mut().unwrap() ^= 1;
    let changed = keys.open_sealed(place(&tenant, &run, "a/1/input"), &id, &changed);
    assert_eq!(changed, Err(Unreadable::Broken));
    assert!(!String::from_utf8_lossy(&sealed).contains("amount"));
}

#[test]
fn s7_new_writes_use_the_newest_key_and_old_ones_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let (tenant, run) = (TenantId::from("t"), RunId::from("r"));
    let old = keys(folder.path());
    let (first, sealed) = old.seal(place(&tenant, &run, "p"), &1.into()).unwrap();
    let rotated = Keys::rotate(&file).unwrap();
    let new = keys(folder.path());
    let (second, later) = new.seal(place(&tenant, &run, "p"), &1.into()).unwrap();
    assert_ne!(first, second);
    assert_eq!(second, rotated);
    // A process that began before knows the new key once it meets it.
    let opened = old.open_sealed(place(&tenant, &run, "p"), &second, &later);
    assert_eq!(opened, Ok(1.into()));
    let opened = new.open_sealed(place(&tenant, &run, "p"), &first, &sealed);
    assert_eq!(opened, Ok(1.into()));
    assert_eq!(old.derive("cursor"), new.derive("cursor"));
    assert_ne!(new.derive("cursor"), new.derive("other"));
    assert!(new.cover(&file, &[first, second]).is_ok());
    let lacks = new.cover(&file, &["0123456789abcdef".to_owned()]);
    assert!(lacks.unwrap_err().to_string().contains("lacks the key"));
}

#[test]
fn s7_a_key_file_that_is_no_key_file_is_not_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    assert!(matches!(Keys::rotate(&file), Err(KeyFault::File { .. })));
    assert!(!file.exists());
    keys(folder.path());
    let whole = std::fs::read_to_string(&file).unwrap();
    let broken = format!("{whole}\nabc");
    std::fs::write(&file, &broken).unwrap();
    let fault = Keys::rotate(&file).unwrap_err();
    assert!(fault.to_string().contains("line 3"), "{fault}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    // A line break at the end is not needed, and what a crash left is no obstacle.
    std::fs::write(&file, whole.trim_end()).unwrap();
    std::fs::write(folder.path().join("keys.next"), "left").unwrap();
    Keys::rotate(&file).unwrap();
    let rotated = std::fs::read_to_string(&file).unwrap();
    assert!(rotated.starts_with(&whole));
    assert_eq!(rotated.lines().count(), 2);
    assert!(!folder.path().join("keys.next").exists());
}

#[test]
fn s7_what_a_death_left_is_no_obstacle_to_a_first_start() {
    let folder = tempfile::tempdir().unwrap();
    let left = format!("keys.{}", std::process::id());
    std::fs::write(folder.path().join(&left), "left").unwrap();
    keys(folder.path());
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["keys".to_owned(), left]);
}

#[cfg(unix)]
#[test]
fn s7_the_key_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    keys(folder.path());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Keys::open(&file), Err(KeyFault::Open(_))));
}
