import { Migration } from '@mikro-orm/migrations';

/** Decisions of every kind, with what was asked, found by their time. Rows that are there were made for calls. */
export class Migration003DecisionLog extends Migration {
  override up(): void {
    this.addSql(`alter table decisions add column kind text not null default 'call'`);
    this.addSql('alter table decisions add column input text null');
    this.addSql('create index decisions_at on decisions (at_ms)');
  }
}
