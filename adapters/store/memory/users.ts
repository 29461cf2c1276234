import { StoreError } from '../../../core/errors.ts';
import type { UserStore } from '../../../core/ports/store.ts';
import type { User } from '../../../core/run/types.ts';
import { tokenIssued, tokensRevoked, userAdded, userSwitched } from '../own-events.ts';
import { requireStorable } from '../storable.ts';
import { append, type Memory, replace } from './state.ts';

const byName = (a: User, b: User): number => compare(a.tenant, b.tenant) || compare(a.name, b.name);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export function memoryUsers(memory: Memory): UserStore {
  const { users, tokens } = memory.state;
  const find = (tenant: string, name: string) => users.find((user) => user.tenant === tenant && user.name === name);
  const requireUser = (tenant: string, name: string): User => {
    requireStorable([tenant, name]);
    const user = find(tenant, name);
    if (user === undefined) throw new StoreError('not_found', `There is no user ${tenant}/${name}`);
    return user;
  };
  return {
    async add({ tenant, name, roles, nowMs }) {
      requireStorable([tenant, name, roles]);
      if (find(tenant, name) !== undefined) throw new StoreError('conflict', `User ${tenant}/${name} exists`);
      let slice = 0;
      while (users.some((user) => user.slice === slice)) slice += 1;
      const user: User = { tenant, name, roles: [...roles], disabled: false, slice, createdAtMs: nowMs };
      users.push(user);
      append(memory, userAdded(user), nowMs);
      return user;
    },
    async get(tenant, name) {
      return find(tenant, name);
    },
    async list(tenant) {
      return users.filter((user) => tenant === undefined || user.tenant === tenant).sort(byName);
    },
    async addToken({ tenant, user, digest, expiresAtMs, nowMs }) {
      requireStorable([tenant, user, digest]);
      if (find(tenant, user) === undefined) throw new StoreError('not_found', `There is no user ${tenant}/${user}`);
      if (tokens.has(digest)) throw new StoreError('conflict', 'The token exists');
      tokens.set(digest, { tenant, user, expiresAtMs });
      append(memory, tokenIssued(tenant, user, expiresAtMs), nowMs);
    },
    async findByToken(digest, nowMs) {
      const token = tokens.get(digest);
      if (token === undefined || token.expiresAtMs <= nowMs) return undefined;
      const user = find(token.tenant, token.user);
      return user?.disabled === true ? undefined : user;
    },
    async revokeTokens({ tenant, name, nowMs }) {
      requireUser(tenant, name);
      const digests = [...tokens].filter(([, token]) => token.tenant === tenant && token.user === name).map(([digest]) => digest);
      for (const digest of digests) tokens.delete(digest);
      if (digests.length > 0) append(memory, tokensRevoked(tenant, name, digests.length), nowMs);
      return digests.length;
    },
    async setDisabled({ tenant, name, disabled, nowMs }) {
      const user = requireUser(tenant, name);
      if (user.disabled === disabled) return user;
      const switched = replace(users, user, { ...user, disabled });
      append(memory, userSwitched(switched), nowMs);
      return switched;
    },
  };
}
