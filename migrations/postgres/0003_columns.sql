-- Every column of seed A's persistence outline by its own name. `claim_at` is the earliest time at
-- which a claim may find an open run (W3): 0 at once, a retry's time, or the end of the lease of the
-- one that holds it.

create table workflow_runs (
    tenant_id text collate "C" not null references tenants (tenant_id),
    run_id text collate "C" not null,
    workflow_id text collate "C",
    workflow_key text collate "C",
    workflow_revision bigint,
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
    idempotency_key text collate "C",
    limits text not null,
    queued_at bigint not null,
    -- What the events project, from here …
    status text not null,
    last_sequence bigint not null,
    started_at bigint,
    completed_at bigint,
    cancel_requested_at bigint,
    wake_at bigint,
    nodes_settled bigint not null,
    nodes_total bigint not null,
    rollup_version bigint not null default 1,
    rollup_state text not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    total_tokens bigint not null,
    included_child_run_ids text not null,
    priced_child_runs bigint not null,
    unpriced_child_runs bigint not null,
    action_invocations bigint not null,
    unpriced_actions bigint not null,
    amount_micros bigint not null,
    pricing_snapshot_ids text not null,
    failure_code text,
    failure_message text,
    failure_node_id text,
    -- … to here.
    open bigint not null check (open in (0, 1)),
    claim_at bigint not null default 0,
    lease_owner text,
    lease_token text,
    lease_fence bigint not null default 0,
    lease_expires_at bigint,
    lease_void bigint not null default 0,
    parked_code text,
    parked_sequence bigint,
    primary key (tenant_id, run_id),
    unique (tenant_id, idempotency_key)
);

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

create table workflow_run_documents (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    graph text not null,
    plan text not null,
    primary key (tenant_id, run_id)
);

create table workflow_node_states (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    node_id text collate "C" not null,
    status text not null,
    latest_attempt bigint not null,
    outcome_port text,
    next_attempt_at bigint,
    ready_at bigint,
    started_at bigint,
    settled_at bigint,
    primary key (tenant_id, run_id, node_id)
);

create table workflow_node_attempts (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    node_id text collate "C" not null,
    attempt bigint not null,
    node_type text not null,
    status text not null,
    semantic_group bigint not null,
    idempotency_key text collate "C",
    outcome_port text,
    child_kind text,
    child_id text collate "C",
    code text,
    message text,
    classification text,
    backoff_ms bigint,
    next_attempt_at bigint,
    input text not null,
    input_hash text,
    input_payload_id text,
    output text,
    output_hash text,
    output_payload_id text,
    usage text,
    cost text,
    started_at bigint,
    completed_at bigint,
    duration_ms bigint generated always as (completed_at - started_at) stored,
    first_sequence bigint not null,
    last_sequence bigint not null,
    primary key (tenant_id, run_id, node_id, attempt)
);

create table workflow_edge_transfers (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    edge_id text collate "C" not null,
    state text not null check (state in ('emitted', 'closed', 'skipped')),
    source_node_id text not null,
    source_port text not null,
    source_attempt bigint,
    target_node_id text not null,
    target_port text not null,
    selected_port text,
    reason text,
    schema_id text not null,
    payload_hash text,
    payload_id text collate "C",
    byte_size bigint not null,
    evidence text not null,
    settled_at bigint,
    primary key (tenant_id, run_id, edge_id)
);

create table workflow_payloads (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    payload_id text collate "C" not null,
    kind text collate "C" not null check (kind in ('execution', 'evidence', 'result')),
    schema_id text not null,
    hash text,
    byte_size bigint not null,
    state text check (state in ('available', 'redacted', 'truncated', 'expired', 'absent')),
    reason text,
    preview text,
    key_id text collate "C",
    bytes bytea,
    retention_days bigint,
    expires_at bigint,
    created_at bigint not null,
    primary key (tenant_id, run_id, payload_id, kind),
    check (kind = 'evidence' or (preview is null and state is null and reason is null)),
    check ((kind = 'evidence') = (bytes is null)),
    check ((kind = 'evidence') = (state is not null)),
    check ((key_id is null) = (bytes is null))
);

create trigger workflow_edge_transfers_stay before update on workflow_edge_transfers
    for each row execute function refuse('an edge settles once');

alter table workflow_revisions
    add column graph_schema_version bigint not null default 1,
    add column revision_id text generated always as (workflow_id || ':' || revision) stored;
alter table workflow_run_events
    add column event_id text generated always as (run_id || ':' || sequence) stored;
