//! Logs that cannot be folded, and what no event projects.

use sluicegate_core::code::Code;
use sluicegate_server::engine::repair::Wrong;

use crate::harness::ground::Ground;
use crate::harness::{by, on_both};
use crate::lived::{lived_in, repair};

on_both!(
    a9_a_log_that_cannot_be_folded_parks_its_run_and_nothing_else_is_touched,
    what_is_not_projected_is_told_and_left
);

async fn a9_a_log_that_cannot_be_folded_parks_its_run_and_nothing_else_is_touched(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let waits = lived.waits.clone();
    let at = |sequence: u64| format!("where run_id = '{waits}' and sequence = {sequence}");
    let (unknown, illegal) = (
        Code::WorkflowEventSchemaUnsupported,
        Code::WorkflowEventTransitionInvalid,
    );
    let mut cases = vec![
        (
            format!(
                "update workflow_run_events set event_type = 'node.unheard' {}",
                at(4)
            ),
            unknown,
            4,
        ),
        (
            format!(
                "update workflow_run_events set schema_version = 2 {}",
                at(1)
            ),
            unknown,
            1,
        ),
        (
            format!("update workflow_run_events set payload = '{{' {}", at(3)),
            unknown,
            3,
        ),
        (
            format!(
                "update workflow_run_events set payload = '{{\"more\":1,' || substr(payload, 2) {}",
                at(5)
            ),
            unknown,
            5,
        ),
        (
            format!(
                "update workflow_run_events set payload = '{{\"nodeId\":\"out\"}}' {}",
                at(3)
            ),
            illegal,
            3,
        ),
        (
            format!("delete from workflow_run_events {}", at(4)),
            illegal,
            5,
        ),
        (
            format!("delete from workflow_run_events where run_id = '{waits}'"),
            illegal,
            0,
        ),
    ];
    if !lived.bare.is_postgres() {
        let damage = "update workflow_run_events set payload = cast(x'ff' as text)";
        cases.push((format!("{damage} {}", at(3)), unknown, 3));
    }
    lived
        .bare
        .run("create table kept as select * from workflow_run_events")
        .await;
    let columns = lived.bare.names("workflow_run_events").await;
    for (damage, code, sequence) in cases {
        lived.bare.run(&damage).await;
        let before = lived.bare.dump().await;
        for apply in [false, true] {
            let (found, looked) = repair(&lived.house, apply).await;
            let [finding] = found.as_slice() else {
                panic!("{damage}: {found:?}");
            };
            assert_eq!(finding.run_id, waits);
            let Wrong::Log {
                code: told,
                sequence: place,
                ..
            } = &finding.wrong
            else {
                panic!("{damage}: {finding:?}");
            };
            assert_eq!((*told, *place), (code, sequence), "{damage}");
            assert_eq!(looked.repaired, 0);
            let parked = lived
                .house
                .store
                .run_row(&by().tenant, &waits)
                .await
                .unwrap()
                .parked;
            assert_eq!(parked.map(|parked| parked.code), apply.then_some(code));
        }
        // Only that it is parked is new.
        let mut after = lived.bare.dump().await;
        let mut before = before;
        let (own, was) = (
            after.remove("workflow_runs"),
            before.remove("workflow_runs"),
        );
        assert_eq!(after, before, "{damage}");
        assert_ne!(own, was);
        // It is answered with its code, and nobody works on it.
        let refused = lived
            .house
            .engine
            .cancel(&by(), &waits, None)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), code);
        // A log that is whole again takes the run back into work.
        lived
            .bare
            .run(&format!(
                "delete from workflow_run_events;
                 insert into workflow_run_events ({columns}) select {columns} from kept"
            ))
            .await;
        let (found, _) = repair(&lived.house, false).await;
        let Wrong::Rows { parked, .. } = &found[0].wrong else {
            panic!("{found:?}");
        };
        assert!(parked);
        let (_, looked) = repair(&lived.house, true).await;
        assert_eq!((looked.wrong, looked.repaired), (1, 1));
        assert_eq!(repair(&lived.house, false).await.0, []);
    }
    lived
        .house
        .engine
        .cancel(&by(), &waits, None)
        .await
        .unwrap();
    lived.house.check(&waits).await;
}

async fn what_is_not_projected_is_told_and_left(ground: Ground) {
    let mut lived = lived_in(&ground).await;
    let done = lived.done.clone();
    for damage in [
        format!("update workflow_runs set actor = '{{' where run_id = '{done}'"),
        format!("update workflow_runs set plan_hash = replace(plan_hash, substr(plan_hash, 9, 4), '0000')
                 where run_id = '{done}'"),
        format!("delete from workflow_runs where run_id = '{done}'"),
    ] {
        lived.bare.run(&damage).await;
        let before = lived.bare.dump().await;
        let (found, looked) = repair(&lived.house, true).await;
        assert_eq!((looked.runs, looked.wrong, looked.repaired), (7, 1, 0), "{damage}");
        assert!(matches!(found[0].wrong, Wrong::Invocation { .. }), "{found:?}");
        assert_eq!(lived.bare.dump().await, before);
    }
}
