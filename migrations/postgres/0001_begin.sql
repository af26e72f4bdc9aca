-- The tables of seed A's persistence outline, and what server.md §§3, 6 adds, but for those that
-- 0003 makes. Times are milliseconds since the epoch; `actor` and the like hold JSON as text, so
-- that its bytes stay. What is compared or ordered is so byte by byte, as on SQLite.

-- The time of leases (W5): the database's own, wherever in a transaction it is asked.
create function now_ms() returns bigint language sql volatile
    as $$ select floor(extract(epoch from clock_timestamp()) * 1000)::bigint $$;

create function refuse() returns trigger language plpgsql
    as $$ begin raise exception '%', tg_argv[0]; end $$;

create table tenants (
    tenant_id text collate "C" not null primary key,
    created_at bigint not null
);

create table accounts (
    tenant_id text collate "C" not null references tenants (tenant_id),
    account_id text collate "C" not null,
    display_name text not null,
    email text,
    role text not null,
    created_at bigint not null,
    primary key (tenant_id, account_id)
);

create table api_keys (
    tenant_id text collate "C" not null,
    key_id text collate "C" not null,
    label text not null,
    secret_hash text not null unique,
    permissions text not null,
    created_by text not null,
    created_at bigint not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    primary key (tenant_id, key_id),
    foreign key (tenant_id, created_by) references accounts (tenant_id, account_id)
);

create table sign_in_links (
    token_hash text not null primary key,
    tenant_id text collate "C" not null,
    account_id text collate "C" not null,
    expires_at bigint not null,
    spent_at bigint,
    foreign key (tenant_id, account_id) references accounts (tenant_id, account_id)
);

create table sessions (
    token_hash text not null primary key,
    tenant_id text collate "C" not null,
    account_id text collate "C" not null,
    csrf text not null,
    created_at bigint not null,
    idle_until bigint not null,
    expires_at bigint not null,
    foreign key (tenant_id, account_id) references accounts (tenant_id, account_id)
);

create table agents (
    tenant_id text collate "C" not null references tenants (tenant_id),
    agent_id text collate "C" not null,
    status text not null check (status in ('active', 'paused', 'archived')),
    revision bigint not null,
    created_at bigint not null,
    primary key (tenant_id, agent_id)
);

create table agent_definition_revisions (
    tenant_id text collate "C" not null,
    agent_id text collate "C" not null,
    revision bigint not null,
    definition text not null,
    created_at bigint not null,
    primary key (tenant_id, agent_id, revision),
    foreign key (tenant_id, agent_id) references agents (tenant_id, agent_id)
);

create table workflow_definitions (
    tenant_id text collate "C" not null references tenants (tenant_id),
    workflow_id text collate "C" not null,
    key text collate "C" not null,
    name text collate "C" not null,
    description text not null,
    status text not null check (status in ('draft', 'published', 'archived')),
    draft_version bigint not null,
    draft_graph text not null,
    draft_checksum text not null,
    draft_saved_at bigint not null,
    draft_saved_by text not null,
    revision bigint,
    created_at bigint not null,
    created_by text not null,
    updated_at bigint not null,
    updated_by text not null,
    primary key (tenant_id, workflow_id),
    unique (tenant_id, key)
);

create table workflow_revisions (
    tenant_id text collate "C" not null,
    workflow_id text collate "C" not null,
    revision bigint not null,
    draft_version bigint not null,
    graph text not null,
    checksum text not null,
    compiler_version text not null,
    plan text not null,
    plan_hash text not null,
    published_at bigint not null,
    published_by text not null,
    note text,
    primary key (tenant_id, workflow_id, revision),
    foreign key (tenant_id, workflow_id)
        references workflow_definitions (tenant_id, workflow_id)
);

create table workflow_run_events (
    tenant_id text collate "C" not null,
    run_id text collate "C" not null,
    sequence bigint not null,
    event_type text not null,
    schema_version bigint not null,
    payload text not null,
    recorded_at bigint not null,
    virtual_offset_ms bigint,
    primary key (tenant_id, run_id, sequence)
);

create table workflow_audit_events (
    tenant_id text collate "C" not null,
    sequence bigint not null,
    action text collate "C" not null,
    subject_kind text collate "C" not null,
    subject_id text collate "C" not null,
    entry text not null,
    primary key (tenant_id, sequence)
);

create index workflow_audit_by_subject
    on workflow_audit_events (tenant_id, subject_kind, subject_id, sequence);

create table workflow_audit_heads (
    tenant_id text collate "C" not null primary key,
    sequence bigint not null,
    hash text not null
);

-- Agent runs and action invocations: one row a key, one more a (key, attempt) (N1, W8).
create table child_runs (
    tenant_id text collate "C" not null,
    child_id text collate "C" not null,
    kind text collate "C" not null check (kind in ('agent', 'action')),
    key text collate "C" not null,
    run_id text collate "C" not null,
    node_id text collate "C" not null,
    target text not null,
    barred bigint not null default 0,
    created_at bigint not null,
    primary key (tenant_id, child_id),
    unique (tenant_id, kind, key)
);

create index child_runs_by_run on child_runs (tenant_id, run_id, created_at, child_id);

create table child_attempts (
    tenant_id text collate "C" not null,
    child_id text collate "C" not null,
    attempt bigint not null,
    fence bigint not null,
    status text not null
        check (status in ('running', 'succeeded', 'failed', 'refused', 'cancelled')),
    executions bigint not null,
    cancel_requested bigint not null default 0,
    deadline_at bigint not null,
    ended_at bigint,
    "end" text,
    output_key_id text,
    output bytea,
    message_key_id text,
    message bytea,
    primary key (tenant_id, child_id, attempt),
    foreign key (tenant_id, child_id) references child_runs (tenant_id, child_id)
);

-- What is never rewritten is refused by the database too.
create trigger workflow_revisions_stay before update on workflow_revisions
    for each row execute function refuse('a published revision is immutable');
create trigger agent_definition_revisions_stay before update on agent_definition_revisions
    for each row execute function refuse('an agent revision is immutable');
create trigger workflow_run_events_stay before update on workflow_run_events
    for each row execute function refuse('events are append-only');
create trigger workflow_run_events_remain before delete on workflow_run_events
    for each row execute function refuse('events are append-only');
create trigger workflow_audit_events_stay before update on workflow_audit_events
    for each row execute function refuse('the audit chain is append-only');
create trigger workflow_audit_events_remain before delete on workflow_audit_events
    for each row execute function refuse('the audit chain is append-only');
create trigger workflow_run_events_whole before truncate on workflow_run_events
    execute function refuse('events are append-only');
create trigger workflow_audit_events_whole before truncate on workflow_audit_events
    execute function refuse('the audit chain is append-only');
