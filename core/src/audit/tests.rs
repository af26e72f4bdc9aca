use super::*;
use crate::actor::UserActor;
use serde_json::json;

fn draft(action: &str) -> Draft {
    Draft {
        tenant_id: TenantId::from("default"),
        actor: Actor::User(UserActor {
            account_id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            email: None,
        }),
        origin: Some(Origin::Manual),
        action: action.to_owned(),
        subject: Subject {
            kind: "run".to_owned(),
            id: "r1".to_owned(),
        },
        metadata: json!({"note": action}),
        occurred_at: Instant(7),
    }
}

fn chain(length: usize) -> (Vec<Entry>, Head) {
    let mut head = Head::default();
    let mut entries = Vec::new();
    for n in 0..length {
        let entry = draft(&format!("act.{n}")).seal(&head).unwrap();
        head = entry.head();
        entries.push(entry);
    }
    (entries, head)
}

#[test]
fn h2_the_first_previous_hash_is_zeros_and_the_hash_covers_every_other_member() {
    let (entries, _) = chain(1);
    let mut object = value::to_value(&entries[0]).unwrap();
    let members = object.as_object_mut().unwrap();
    let said = members.remove("eventHash").unwrap();
    assert_eq!(
        members["previousHash"],
        format!("sha256:{}", "0".repeat(64))
    );
    assert_eq!(said, value::hash(&object).to_string());
}

#[test]
fn h3_a_whole_chain_is_valid() {
    let (entries, head) = chain(4);
    let answer = verify(&entries, Some(head));
    assert!(answer.valid);
    assert_eq!(answer.checked_through_sequence, 4);
    assert!(verify(&[], Some(Head::default())).valid);
}

#[test]
fn h3_every_break_is_found_where_it_is() {
    let (whole, head) = chain(4);
    let found = |entries: &[Entry]| {
        let answer = verify(entries, Some(head));
        (answer.first_broken_sequence, answer.reason)
    };
    let mut changed = whole.clone();
    changed[1].action = "other".to_owned();
    assert_eq!(found(&changed), (Some(2), Some(Break::Content)));
    // Whoever changes an entry and its hash breaks the link to the next.
    changed[1].event_hash = changed[1].content_hash().unwrap();
    assert_eq!(found(&changed), (Some(3), Some(Break::Link)));
    let mut missing = whole.clone();
    missing.remove(2);
    assert_eq!(found(&missing), (Some(3), Some(Break::Link)));
    assert_eq!(found(&whole[..3]), (Some(4), Some(Break::Head)));
    assert_eq!(found(&[]), (Some(1), Some(Break::Head)));
}

#[test]
fn h3_other_events_break_the_entry_that_hashed_them() {
    let (entries, head) = chain(2);
    let mut check = Check::default();
    assert!(check.take(&entries[0]));
    check.events_differ(Hash::of(b"a"), Hash::of(b"b"));
    let answer = check.finish(Some(head));
    assert_eq!(answer.first_broken_sequence, Some(1));
    assert_eq!(answer.checked_through_sequence, 0);
    assert_eq!(answer.reason, Some(Break::Events));
}

#[test]
fn h1_the_weightiest_event_names_the_action() {
    let event = |sequence: u64, name: &str| json!({"sequence": sequence, "type": name});
    let action = |events: &[Value]| of_decision(events).unwrap().0;
    let settled = [
        event(4, "node.attempt.settled"),
        event(5, "edge.settled"),
        event(6, "node.attempt.started"),
    ];
    assert_eq!(action(&settled), "node.attempt.settled");
    let (_, metadata) = of_decision(&settled).unwrap();
    assert_eq!(
        metadata["events"],
        json!([
            {"sequence": 4, "type": "node.attempt.settled"},
            {"sequence": 6, "type": "node.attempt.started"},
        ])
    );
    assert_eq!(metadata["firstSequence"], 4);
    assert_eq!(metadata["lastSequence"], 6);
    assert_eq!(metadata["eventsHash"], events_hash(&settled).to_string());
    let ended = [event(8, "run.claimed"), event(9, "run.failed")];
    assert_eq!(action(&ended), "run.failed");
    let light = [event(2, "node.ready"), event(3, "edge.settled")];
    assert_eq!(action(&light), "node.ready");
    assert_eq!(of_decision(&[]), None);
}
