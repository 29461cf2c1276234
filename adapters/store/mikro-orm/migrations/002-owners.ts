import { Migration } from '@mikro-orm/migrations';

/** What is asked by its owner is found by its owner: tokens to revoke, runs and threads to list. */
export class Migration002Owners extends Migration {
  override up(): void {
    this.addSql('create index user_tokens_owner on user_tokens (tenant, user_name)');
    this.addSql('create index runs_actor on runs (tenant, actor, position)');
  }
}
