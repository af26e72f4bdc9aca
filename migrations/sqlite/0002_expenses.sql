-- The sample module `expenses` (server.md §6): its own tables, read and written by it alone.

create table expenses_claims (
    tenant_id text not null,
    claim_id text not null,
    status text not null check (status in ('approved', 'rejected')),
    text text not null,
    decided_at integer not null,
    primary key (tenant_id, claim_id)
) strict, without rowid;

-- One row a mutation; the unique key is what makes an action idempotent.
create table expenses_decisions (
    tenant_id text not null,
    idempotency_key text not null,
    claim_id text not null,
    status text not null,
    decided_at integer not null,
    primary key (tenant_id, idempotency_key)
) strict, without rowid;

create index expenses_decisions_by_claim on expenses_decisions (tenant_id, claim_id);
