import { Migration } from '@mikro-orm/migrations';

/** What is kept no longer is found without reading what is. */
export class Migration006Retention extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

const STATEMENTS = [
  'alter table threads add column pruned integer not null default 0',
  'create index threads_unpruned on threads (position) where pruned = 0',
  'create index permits_run on permits (run)',
  `create index calls_unknown on calls (run) where state = 'unknown'`,
  'create index events_loose on events (at_ms) where thread is null',
  `create table approval_uses (
    sha256 text not null,
    approval text not null,
    primary key (sha256, approval)
  ) without rowid`,
  `insert into approval_uses (sha256, approval)
    select distinct file.value ->> 'sha256', approvals.id from approvals, json_each(approvals.asked, '$.files') as file`,
];
