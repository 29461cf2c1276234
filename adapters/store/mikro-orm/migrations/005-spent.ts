import { Migration } from '@mikro-orm/migrations';

/** What a call reserved and spent, found by the window in which it counts. Permits that are there spent nothing that anybody wrote down. */
export class Migration005Spent extends Migration {
  override up(): void {
    this.addSql('alter table permits add column spent text null');
    this.addSql('alter table permits add column spent_at_ms bigint null');
    this.addSql('create index permits_spent on permits (spent_at_ms) where spent_at_ms is not null');
  }
}
