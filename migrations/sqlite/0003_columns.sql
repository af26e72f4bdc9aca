-- Every column of seed A's persistence outline by its own name, where 0001 kept projections as
-- one JSON text. `claim_at` is the earliest time at which a claim may find an open run (W3):
-- 0 at once, a retry's time, or the end of the lease of the one that holds it.
--
-- Every row is kept, also a damaged one: what cannot be read becomes the default of its column,
-- and `repair` builds projections anew. Numbers are cast, since a strict table refuses a word.

drop trigger if exists workflow_edge_transfers_stay;
update workflow_runs set row = '{}' where not json_valid(row);
update workflow_node_states set row = '{}' where not json_valid(row);
update workflow_node_attempts set row = '{}' where not json_valid(row);
update workflow_edge_transfers set row = '{}' where not json_valid(row);
update workflow_payloads set evidence = '{}' where not json_valid(evidence);

create table new_runs (
    tenant_id text not null references tenants (tenant_id),
    run_id text not null,
    workflow_id text,
    workflow_key text,
    workflow_revision integer,
    graph_checksum text not null,
    plan_hash text not null,
    compiler_version text not null,
    mode text not null check (mode in ('live', 'simulate')),
    actor_kind text not null,
    actor_id text not null,
    actor_label text not null,
    actor_run_id text,
    actor_configured_by text,
    actor text not null,
    origin_kind text not null,
    origin_reference text,
    origin text not null,
    permissions text not null,
    permission_digest text,
    input_hash text not null,
    input_payload_id text not null,
    idempotency_key text,
    limits text not null,
    queued_at integer not null,
    -- What the events project, from here …
    status text not null,
    last_sequence integer not null,
    started_at integer,
    completed_at integer,
    cancel_requested_at integer,
    wake_at integer,
    nodes_settled integer not null,
    nodes_total integer not null,
    rollup_version integer not null default 1,
    rollup_state text not null,
    input_tokens integer not null,
    output_tokens integer not null,
    total_tokens integer not null,
    included_child_run_ids text not null,
    priced_child_runs integer not null,
    unpriced_child_runs integer not null,
    action_invocations integer not null,
    unpriced_actions integer not null,
    amount_micros integer not null,
    pricing_snapshot_ids text not null,
    failure_code text,
    failure_message text,
    failure_node_id text,
    -- … to here.
    open integer not null check (open in (0, 1)),
    claim_at integer not null default 0,
    lease_owner text,
    lease_token text,
    lease_fence integer not null default 0,
    lease_expires_at integer,
    lease_void integer not null default 0,
    parked_code text,
    parked_sequence integer,
    primary key (tenant_id, run_id),
    unique (tenant_id, idempotency_key)
) strict;

insert into new_runs
select r.tenant_id, r.run_id, r.workflow_id, r.workflow_key, r.workflow_revision, r.graph_checksum,
       r.plan_hash, coalesce(r.queued ->> '$.compilerVersion', ''), r.mode, r.actor_kind, r.actor_id,
       coalesce(r.who ->> '$.displayName', r.who ->> '$.agentName', r.who ->> '$.label', ''),
       r.who ->> '$.runId', r.who ->> '$.configuredBy.accountId', r.actor, r.origin_kind,
       coalesce(r.why ->> '$.operationId', r.why ->> '$.scheduleId', r.why ->> '$.triggerId'),
       r.origin, r.permissions, r.queued ->> '$.permissionDigest', r.input_hash,
       coalesce(r.queued ->> '$.input.payloadId', 'input'), r.idempotency_key,
       coalesce(r.queued -> '$.limits', '{}'), r.queued_at, r.status, r.last_sequence,
       cast(r.row ->> '$.startedAt' as integer), r.completed_at,
       cast(r.row ->> '$.cancelRequestedAt' as integer), r.wake_at,
       coalesce(cast(r.row ->> '$.nodesSettled' as integer), 0),
       coalesce(cast(r.row ->> '$.nodesTotal' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.version' as integer), 1),
       coalesce(r.row ->> '$.usage.state', 'provisional'),
       coalesce(cast(r.row ->> '$.usage.inputTokens' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.outputTokens' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.totalTokens' as integer), 0),
       coalesce(r.row -> '$.usage.includedChildRunIds', '[]'),
       coalesce(cast(r.row ->> '$.usage.pricedChildRuns' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.unpricedChildRuns' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.actionInvocations' as integer), 0),
       coalesce(cast(r.row ->> '$.usage.unpricedActions' as integer), 0),
       coalesce(cast(r.row ->> '$.cost.amountMicros' as integer), 0),
       coalesce(r.row -> '$.cost.pricingSnapshotIds', '[]'), r.failure_code,
       r.row ->> '$.failure.message', r.row ->> '$.failure.nodeId', r.open,
       coalesce(case when r.lease_token is not null and r.lease_void = 0 then r.lease_expires_at
                     else r.wake_at end, 0),
       r.lease_owner, r.lease_token, r.lease_fence, r.lease_expires_at, r.lease_void,
       r.parked_code, r.parked_sequence
from (select w.*,
             case when json_valid(w.actor) then w.actor else '{}' end as who,
             case when json_valid(w.origin) then w.origin else '{}' end as why,
             case when json_valid(q.payload) then q.payload else '{}' end as queued
      from workflow_runs w left join workflow_run_events q
        on q.tenant_id = w.tenant_id and q.run_id = w.run_id and q.sequence = 1) r;

create table new_run_documents (
    tenant_id text not null,
    run_id text not null,
    graph text not null,
    plan text not null,
    primary key (tenant_id, run_id)
) strict;
insert into new_run_documents select tenant_id, run_id, graph, plan from workflow_run_documents;
drop table workflow_run_documents;
drop table workflow_runs;
alter table new_runs rename to workflow_runs;
alter table new_run_documents rename to workflow_run_documents;

create index workflow_runs_by_time on workflow_runs (tenant_id, queued_at desc, run_id desc);
create index workflow_runs_by_workflow
    on workflow_runs (tenant_id, workflow_id, queued_at desc, run_id desc);
create index workflow_runs_due
    on workflow_runs (tenant_id, claim_at, queued_at, run_id) where open = 1;
create index workflow_runs_unwell
    on workflow_runs (tenant_id, queued_at desc, run_id desc) where status in ('failed', 'refused');
-- What a filter by end and retention go along.
create index workflow_runs_ended
    on workflow_runs (tenant_id, completed_at, run_id) where completed_at is not null;

create table new_node_states (
    tenant_id text not null,
    run_id text not null,
    node_id text not null,
    status text not null,
    latest_attempt integer not null,
    outcome_port text,
    next_attempt_at integer,
    ready_at integer,
    started_at integer,
    settled_at integer,
    primary key (tenant_id, run_id, node_id)
) strict, without rowid;
insert into new_node_states
select tenant_id, run_id, node_id, status,
       coalesce(cast(row ->> '$.latestAttempt' as integer), 0), row ->> '$.outcomePort',
       cast(row ->> '$.nextAttemptAt' as integer), cast(row ->> '$.readyAt' as integer),
       cast(row ->> '$.startedAt' as integer), cast(row ->> '$.settledAt' as integer)
from workflow_node_states;
drop table workflow_node_states;
alter table new_node_states rename to workflow_node_states;

create table new_node_attempts (
    tenant_id text not null,
    run_id text not null,
    node_id text not null,
    attempt integer not null,
    node_type text not null,
    status text not null,
    semantic_group integer not null,
    idempotency_key text,
    outcome_port text,
    child_kind text,
    child_id text,
    code text,
    message text,
    classification text,
    backoff_ms integer,
    next_attempt_at integer,
    input text not null,
    input_hash text,
    input_payload_id text,
    output text,
    output_hash text,
    output_payload_id text,
    usage text,
    cost text,
    started_at integer,
    completed_at integer,
    duration_ms integer generated always as (completed_at - started_at) virtual,
    first_sequence integer not null,
    last_sequence integer not null,
    primary key (tenant_id, run_id, node_id, attempt)
) strict, without rowid;
insert into new_node_attempts
select a.tenant_id, a.run_id, a.node_id, a.attempt,
       coalesce((select n.value ->> '$.type'
                 from (select coalesce(v.graph, d.graph) as graph
                       from workflow_runs r
                       left join workflow_revisions v
                         on v.tenant_id = r.tenant_id and v.workflow_id = r.workflow_id
                        and v.revision = r.workflow_revision
                       left join workflow_run_documents d
                         on d.tenant_id = r.tenant_id and d.run_id = r.run_id
                       where r.tenant_id = a.tenant_id and r.run_id = a.run_id) g,
                      json_each(case when json_valid(g.graph) then g.graph end, '$.nodes') n
                 where case when n.type = 'object' then n.value ->> '$.id' = a.node_id end), ''),
       a.status, coalesce(cast(a.row ->> '$.semanticGroup' as integer), 0),
       a.row ->> '$.idempotencyKey', a.row ->> '$.outcomePort', a.child_kind, a.child_id, a.code,
       a.row ->> '$.message', a.row ->> '$.classification',
       cast(a.row ->> '$.retry.backoffMs' as integer),
       cast(a.row ->> '$.retry.nextAttemptAt' as integer), coalesce(a.row -> '$.input', '{}'),
       a.row ->> '$.input.hash', a.row ->> '$.input.payloadId', a.row -> '$.output',
       a.row ->> '$.output.hash', a.row ->> '$.output.payloadId', a.row -> '$.usage',
       a.row -> '$.cost', cast(a.row ->> '$.startedAt' as integer),
       cast(a.row ->> '$.completedAt' as integer),
       coalesce(cast(a.row ->> '$.firstSequence' as integer), 0),
       coalesce(cast(a.row ->> '$.lastSequence' as integer), 0)
from workflow_node_attempts a;
drop table workflow_node_attempts;
alter table new_node_attempts rename to workflow_node_attempts;

create table new_edge_transfers (
    tenant_id text not null,
    run_id text not null,
    edge_id text not null,
    state text not null check (state in ('emitted', 'closed', 'skipped')),
    source_node_id text not null,
    source_port text not null,
    source_attempt integer,
    target_node_id text not null,
    target_port text not null,
    selected_port text,
    reason text,
    schema_id text not null,
    payload_hash text,
    payload_id text,
    byte_size integer not null,
    evidence text not null,
    settled_at integer,
    primary key (tenant_id, run_id, edge_id)
) strict, without rowid;
insert into new_edge_transfers
select tenant_id, run_id, edge_id,
       case when state in ('emitted', 'closed') then state else 'skipped' end,
       coalesce(row ->> '$.source.nodeId', ''), coalesce(row ->> '$.source.port', ''),
       cast(row ->> '$.source.attempt' as integer), coalesce(row ->> '$.target.nodeId', ''),
       coalesce(row ->> '$.target.port', ''), row ->> '$.selectedPort', row ->> '$.reason',
       coalesce(row ->> '$.evidence.schemaId', ''), row ->> '$.evidence.hash',
       row ->> '$.evidence.payloadId',
       coalesce(cast(row ->> '$.evidence.originalByteSize' as integer), 0),
       coalesce(row -> '$.evidence', '{}'), cast(row ->> '$.settledAt' as integer)
from workflow_edge_transfers;
drop table workflow_edge_transfers;
alter table new_edge_transfers rename to workflow_edge_transfers;

create trigger workflow_edge_transfers_stay before update on workflow_edge_transfers
begin
    select raise(abort, 'an edge settles once');
end;

-- An execution or result row never carries evidence or a preview, an evidence row never an
-- encrypted value. A row that retention has named keeps the policy until it is gone.
create table new_payloads (
    tenant_id text not null,
    run_id text not null,
    payload_id text not null,
    kind text not null check (kind in ('execution', 'evidence', 'result')),
    schema_id text not null,
    hash text,
    byte_size integer not null,
    state text check (state in ('available', 'redacted', 'truncated', 'expired', 'absent')),
    reason text,
    preview text,
    key_id text,
    bytes blob,
    retention_days integer,
    expires_at integer,
    created_at integer not null,
    primary key (tenant_id, run_id, payload_id, kind),
    check (kind = 'evidence' or (preview is null and state is null and reason is null)),
    check ((kind = 'evidence') = (bytes is null)),
    check ((kind = 'evidence') = (state is not null)),
    check ((key_id is null) = (bytes is null))
) strict;
insert into new_payloads
select tenant_id, run_id, payload_id, kind, schema_id, evidence ->> '$.hash',
       coalesce(cast(evidence ->> '$.originalByteSize' as integer), 0),
       case when kind <> 'evidence' then null
            when evidence ->> '$.state' in ('available', 'redacted', 'truncated', 'expired')
            then evidence ->> '$.state' else 'absent' end,
       case when kind = 'evidence' then evidence ->> '$.reason' end,
       preview, key_id, bytes, null, null, created_at
from workflow_payloads;
drop table workflow_payloads;
alter table new_payloads rename to workflow_payloads;

alter table workflow_revisions add column graph_schema_version integer not null default 1;
alter table workflow_revisions add column revision_id text
    generated always as (workflow_id || ':' || revision) virtual;
alter table workflow_run_events add column event_id text
    generated always as (run_id || ':' || sequence) virtual;
