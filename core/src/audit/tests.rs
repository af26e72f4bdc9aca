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

#[test]
fn h2_the_first_previous_hash_is_zeros_and_the_hash_covers_every_other_member() {
    let entry = draft("act").seal(&Head::default()).unwrap();
    let mut object = value::to_value(&entry).unwrap();
    let members = object.as_object_mut().unwrap();
    let said = members.remove("eventHash").unwrap();
    assert_eq!(
        members["previousHash"],
        format!("sha256:{}", "0".repeat(64))
    );
    assert_eq!(said, value::hash(&object).to_string());
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

#[test]
fn h2_a_prepared_entry_is_the_sealed_one_to_the_byte() {
    let head = Head {
        sequence: 41,
        hash: Hash::of(b"before"),
    };
    for origin in [None, Some(Origin::Manual)] {
        let draft = Draft {
            origin,
            ..draft("an \"act\" \u{1}")
        };
        let entry = draft.clone().seal(&head).unwrap();
        let sealed = draft.prepare().unwrap().seal(&head);
        let text = value::canonical(&value::to_value(&entry).unwrap());
        assert_eq!((sealed.head, sealed.text), (entry.head(), text));
    }
}
