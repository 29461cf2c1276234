import { StoreError } from '../../../core/errors.ts';
import type { UserStore } from '../../../core/ports/store.ts';
import { tokenIssued, tokensRevoked, userAdded, userSwitched } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { appendEvent } from './append-event.ts';
import type { Database, Tx } from './database.ts';
import { UserEntity, type UserRecord, UserTokenEntity } from './entities.ts';
import { toUser } from './rows.ts';

const ADD_TENANT = 'insert into tenants (name, created_at_ms) values (?, ?) on conflict do nothing';

/** The slice is the lowest free one: 0, or the successor of a taken one. */
const ADD_USER = `
insert into users (tenant, name, roles, disabled, created_at_ms, slice)
values (?, ?, ?, 0, ?, coalesce(
  (select 0 where not exists (select 1 from users where slice = 0)),
  (select min(taken.slice) + 1 from users taken where not exists (select 1 from users next where next.slice = taken.slice + 1))
))
returning *`;

const ADD_TOKEN = 'insert into user_tokens (digest, tenant, user_name, expires_at_ms, created_at_ms) values (?, ?, ?, ?, ?)';

const REVOKE_TOKENS = 'delete from user_tokens where tenant = ? and user_name = ?';

const SWITCH_USER = 'update users set disabled = ? where tenant = ? and name = ? and disabled <> ? returning *';

export function userStore(db: Database): UserStore {
  const get: UserStore['get'] = async (tenant, name) => (await db.find(UserEntity, { tenant, name })).map(toUser)[0];
  return {
    async add({ tenant, name, roles, nowMs }) {
      requireStorable([tenant, name, roles]);
      return db.write(async (tx) => {
        if (await userExists(tx, tenant, name)) throw new StoreError('conflict', `User ${tenant}/${name} exists`);
        await tx.run(ADD_TENANT, [tenant, nowMs]);
        const user = toUser((await tx.get<UserRecord>(ADD_USER, [tenant, name, JSON.stringify(roles), nowMs])) as UserRecord);
        await appendEvent(db, tx, userAdded(user), nowMs);
        return user;
      });
    },
    get,
    async list(tenant) {
      const where = tenant === undefined ? {} : { tenant };
      return (await db.find(UserEntity, where, { orderBy: { tenant: 'asc', name: 'asc' } })).map(toUser);
    },
    async addToken({ tenant, user, digest, expiresAtMs, nowMs }) {
      requireStorable([tenant, user, digest]);
      await db.write(async (tx) => {
        if (!(await userExists(tx, tenant, user))) throw new StoreError('not_found', `There is no user ${tenant}/${user}`);
        await tx.run(ADD_TOKEN, [digest, tenant, user, expiresAtMs, nowMs]);
        await appendEvent(db, tx, tokenIssued(tenant, user, expiresAtMs), nowMs);
      });
    },
    async findByToken(digest, nowMs) {
      const [token] = await db.find(UserTokenEntity, { digest });
      if (token === undefined || token.expires_at_ms <= nowMs) return undefined;
      const user = await get(token.tenant, token.user_name);
      return user?.disabled === true ? undefined : user;
    },
    async revokeTokens({ tenant, name, nowMs }) {
      requireStorable([tenant, name]);
      return db.write(async (tx) => {
        await requireUser(tx, tenant, name);
        const count = await tx.run(REVOKE_TOKENS, [tenant, name]);
        if (count > 0) await appendEvent(db, tx, tokensRevoked(tenant, name, count), nowMs);
        return count;
      });
    },
    async setDisabled({ tenant, name, disabled, nowMs }) {
      requireStorable([tenant, name]);
      const to = disabled ? 1 : 0;
      return db.write(async (tx) => {
        const row = await tx.get<UserRecord>(SWITCH_USER, [to, tenant, name, to]);
        if (row === undefined) return toUser(await requireUser(tx, tenant, name));
        const user = toUser(row);
        await appendEvent(db, tx, userSwitched(user), nowMs);
        return user;
      });
    },
  };
}

async function requireUser(tx: Tx, tenant: string, name: string): Promise<UserRecord> {
  const row = await tx.get<UserRecord>('select * from users where tenant = ? and name = ?', [tenant, name]);
  if (row === undefined) throw new StoreError('not_found', `There is no user ${tenant}/${name}`);
  return row;
}

export async function userExists(tx: Tx, tenant: string, name: string): Promise<boolean> {
  return (await tx.get('select 1 from users where tenant = ? and name = ?', [tenant, name])) !== undefined;
}
