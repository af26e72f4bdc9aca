-- The sample module `expenses` (server.md §6): its own tables, read and written by it alone.

create table expenses_claims (
    tenant_id text collate "C" not null,
    claim_id text collate "C" not null,
    status text not null check (status in ('approved', 'rejected')),
    text text not null,
    decided_at bigint not null,
    primary key (tenant_id, claim_id)
);

-- One row a mutation; the unique key is what makes an action idempotent.
create table expenses_decisions (
    tenant_id text collate "C" not null,
    idempotency_key text collate "C" not null,
    claim_id text collate "C" not null,
    status text not null,
    decided_at bigint not null,
    primary key (tenant_id, idempotency_key)
);

create index expenses_decisions_by_claim on expenses_decisions (tenant_id, claim_id);
