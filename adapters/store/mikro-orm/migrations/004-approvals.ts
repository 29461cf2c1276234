import { Migration } from '@mikro-orm/migrations';

/** Asks for approval, the files that they are bound to, and their deliveries beside those of replies. */
export class Migration004Approvals extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

const STATEMENTS = [
  `create table approvals (
    id text not null primary key,
    position integer not null,
    tenant text not null,
    run text not null,
    call text not null,
    step integer not null,
    call_index integer not null,
    actor text not null,
    state text not null,
    created_at_ms bigint not null,
    expires_at_ms bigint not null,
    answered_at_ms bigint null,
    answered_by text null,
    answer_decision text null,
    note text null,
    use_by_ms bigint null,
    ended_at_ms bigint null,
    asked text not null,
    constraint approvals_tenant_foreign foreign key (tenant) references tenants (name),
    constraint approvals_run_foreign foreign key (run) references runs (id)
  )`,
  'create unique index approvals_position_unique on approvals (position)',
  `create unique index approvals_one_live_per_call on approvals (call) where state in ('pending', 'approved')`,
  'create index approvals_run on approvals (run, step, call_index)',
  'create index approvals_tenant on approvals (tenant, position)',
  `create index approvals_live on approvals (expires_at_ms) where state in ('pending', 'approved')`,
  `create table approval_files (
    sha256 text not null primary key,
    created_at_ms bigint not null,
    body text not null
  )`,
  `alter table deliveries add column kind text not null default 'reply'`,
  'alter table deliveries add column approval text null',
];
