-- The tables of seed A's persistence outline, and what server.md §§3, 6 adds. Times are
-- milliseconds since the epoch; columns named `row`, `actor` and the like hold JSON.

create table tenants (
    tenant_id text not null primary key,
    created_at integer not null
) strict, without rowid;

create table accounts (
    tenant_id text not null references tenants (tenant_id),
    account_id text not null,
    display_name text not null,
    email text,
    role text not null,
    created_at integer not null,
    primary key (tenant_id, account_id)
) strict, without rowid;

create table api_keys (
    tenant_id text not null,
    key_id text not null,
    label text not null,
    secret_hash text not null unique,
    permissions text not null,
    created_by text not null,
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer,
    primary key (tenant_id, key_id),
    foreign key (tenant_id, created_by) references accounts (tenant_id, account_id)
) strict, without rowid;

create table sign_in_links (
    token_hash text not null primary key,
    tenant_id text not null,
    account_id text not null,
    expires_at integer not null,
    spent_at integer,
    foreign key (tenant_id, account_id) references accounts (tenant_id, account_id)
) strict, without rowid;

create table sessions (
    token_hash text not null primary key,
    tenant_id text not null,
    account_id text not null,
    csrf text not null,
    created_at integer not null,
    idle_until integer not null,
    expires_at integer not null,
    foreign key (tenant_id, account_id) references accounts (tenant_id, account_id)
) strict, without rowid;

create table agents (
    tenant_id text not null references tenants (tenant_id),
    agent_id text not null,
    status text not null check (status in ('active', 'paused', 'archived')),
    revision integer not null,
    created_at integer not null,
    primary key (tenant_id, agent_id)
) strict, without rowid;

create table agent_definition_revisions (
    tenant_id text not null,
    agent_id text not null,
    revision integer not null,
    definition text not null,
    created_at integer not null,
    primary key (tenant_id, agent_id, revision),
    foreign key (tenant_id, agent_id) references agents (tenant_id, agent_id)
) strict, without rowid;

create table workflow_definitions (
    tenant_id text not null references tenants (tenant_id),
    workflow_id text not null,
    key text not null,
    name text not null,
    description text not null,
    status text not null check (status in ('draft', 'published', 'archived')),
    draft_version integer not null,
    draft_graph text not null,
    draft_checksum text not null,
    draft_saved_at integer not null,
    draft_saved_by text not null,
    revision integer,
    created_at integer not null,
    created_by text not null,
    updated_at integer not null,
    updated_by text not null,
    primary key (tenant_id, workflow_id),
    unique (tenant_id, key)
) strict;

create table workflow_revisions (
    tenant_id text not null,
    workflow_id text not null,
    revision integer not null,
    draft_version integer not null,
    graph text not null,
    checksum text not null,
    compiler_version text not null,
    plan text not null,
    plan_hash text not null,
    published_at integer not null,
    published_by text not null,
    note text,
    primary key (tenant_id, workflow_id, revision),
    foreign key (tenant_id, workflow_id)
        references workflow_definitions (tenant_id, workflow_id)
) strict;

-- `open`: live, not ended, not parked; what a claim may find (W3).
create table workflow_runs (
    tenant_id text not null references tenants (tenant_id),
    run_id text not null,
    workflow_id text,
    workflow_key text,
    workflow_revision integer,
    graph_checksum text not null,
    plan_hash text not null,
    mode text not null check (mode in ('live', 'simulate')),
    status text not null,
    actor_kind text not null,
    actor_id text not null,
    actor text not null,
    origin_kind text not null,
    origin text not null,
    permissions text not null,
    input_hash text not null,
    idempotency_key text,
    last_sequence integer not null,
    queued_at integer not null,
    completed_at integer,
    wake_at integer,
    failure_code text,
    row text not null,
    open integer not null check (open in (0, 1)),
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

create index workflow_runs_by_time on workflow_runs (tenant_id, queued_at desc, run_id desc);
create index workflow_runs_by_workflow
    on workflow_runs (tenant_id, workflow_id, queued_at desc, run_id desc);
create index workflow_runs_open on workflow_runs (tenant_id, queued_at, run_id) where open = 1;
create index workflow_runs_unwell
    on workflow_runs (tenant_id, queued_at desc, run_id desc) where status in ('failed', 'refused');

-- The graph and plan of a run that no published revision holds.
create table workflow_run_documents (
    tenant_id text not null,
    run_id text not null,
    graph text not null,
    plan text not null,
    primary key (tenant_id, run_id),
    foreign key (tenant_id, run_id) references workflow_runs (tenant_id, run_id)
) strict;

create table workflow_node_states (
    tenant_id text not null,
    run_id text not null,
    node_id text not null,
    status text not null,
    row text not null,
    primary key (tenant_id, run_id, node_id)
) strict, without rowid;

create table workflow_node_attempts (
    tenant_id text not null,
    run_id text not null,
    node_id text not null,
    attempt integer not null,
    status text not null,
    child_kind text,
    child_id text,
    code text,
    row text not null,
    primary key (tenant_id, run_id, node_id, attempt)
) strict, without rowid;

create table workflow_edge_transfers (
    tenant_id text not null,
    run_id text not null,
    edge_id text not null,
    state text not null,
    row text not null,
    primary key (tenant_id, run_id, edge_id)
) strict, without rowid;

create table workflow_run_events (
    tenant_id text not null,
    run_id text not null,
    sequence integer not null,
    event_type text not null,
    schema_version integer not null,
    payload text not null,
    recorded_at integer not null,
    virtual_offset_ms integer,
    primary key (tenant_id, run_id, sequence)
) strict, without rowid;

-- An execution or result row never carries a preview, an evidence row never an encrypted value.
create table workflow_payloads (
    tenant_id text not null,
    run_id text not null,
    payload_id text not null,
    kind text not null check (kind in ('execution', 'evidence', 'result')),
    schema_id text not null,
    evidence text not null,
    preview text,
    key_id text,
    bytes blob,
    created_at integer not null,
    primary key (tenant_id, run_id, payload_id, kind),
    check (kind = 'evidence' or preview is null),
    check ((kind = 'evidence') = (bytes is null)),
    check ((key_id is null) = (bytes is null))
) strict;

create table workflow_audit_events (
    tenant_id text not null,
    sequence integer not null,
    action text not null,
    subject_kind text not null,
    subject_id text not null,
    entry text not null,
    primary key (tenant_id, sequence)
) strict, without rowid;

create index workflow_audit_by_subject
    on workflow_audit_events (tenant_id, subject_kind, subject_id, sequence);

create table workflow_audit_heads (
    tenant_id text not null primary key,
    sequence integer not null,
    hash text not null
) strict, without rowid;

-- Agent runs and action invocations: one row a key, one more a (key, attempt) (N1, W8).
create table child_runs (
    tenant_id text not null,
    child_id text not null,
    kind text not null check (kind in ('agent', 'action')),
    key text not null,
    run_id text not null,
    node_id text not null,
    target text not null,
    barred integer not null default 0,
    created_at integer not null,
    primary key (tenant_id, child_id),
    unique (tenant_id, kind, key)
) strict;

create index child_runs_by_run on child_runs (tenant_id, run_id, created_at, child_id);

create table child_attempts (
    tenant_id text not null,
    child_id text not null,
    attempt integer not null,
    fence integer not null,
    status text not null
        check (status in ('running', 'succeeded', 'failed', 'refused', 'cancelled')),
    executions integer not null,
    cancel_requested integer not null default 0,
    deadline_at integer not null,
    ended_at integer,
    end text,
    output_key_id text,
    output blob,
    message_key_id text,
    message blob,
    primary key (tenant_id, child_id, attempt),
    foreign key (tenant_id, child_id) references child_runs (tenant_id, child_id)
) strict;

-- What is never rewritten is refused by the database too.
create trigger workflow_revisions_stay before update on workflow_revisions
begin
    select raise(abort, 'a published revision is immutable');
end;

create trigger agent_definition_revisions_stay before update on agent_definition_revisions
begin
    select raise(abort, 'an agent revision is immutable');
end;

create trigger workflow_run_events_stay before update on workflow_run_events
begin
    select raise(abort, 'events are append-only');
end;

create trigger workflow_run_events_remain before delete on workflow_run_events
begin
    select raise(abort, 'events are append-only');
end;

create trigger workflow_audit_events_stay before update on workflow_audit_events
begin
    select raise(abort, 'the audit chain is append-only');
end;

create trigger workflow_audit_events_remain before delete on workflow_audit_events
begin
    select raise(abort, 'the audit chain is append-only');
end;

create trigger workflow_edge_transfers_stay before update on workflow_edge_transfers
begin
    select raise(abort, 'an edge settles once');
end;
