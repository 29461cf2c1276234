import { randomBytes } from 'node:crypto';

/** Prefix of each kind of id. An id is `<prefix>_<26 lower-case base32 characters>`: 10 of time, 16 random (80 bits). */
export const ID_PREFIX = {
  thread: 'thr',
  message: 'msg',
  run: 'run',
  call: 'cal',
  permit: 'prm',
  decision: 'dec',
  approval: 'apr',
  checkpoint: 'chk',
  delivery: 'dlv',
  sandbox: 'sbx',
  token: 'tok',
  request: 'req',
} as const;

export type IdKind = keyof typeof ID_PREFIX;

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** A fresh id that sorts by creation time (Crockford base32, as in the ULID layout). */
export function newId(kind: IdKind, nowMs: number = Date.now()): string {
  let time = '';
  for (let rest = nowMs, i = 0; i < 10; i += 1, rest = Math.floor(rest / 32)) time = ALPHABET[rest % 32] + time;
  let random = '';
  for (const byte of randomBytes(16)) random += ALPHABET[byte % 32];
  return `${ID_PREFIX[kind]}_${time}${random}`;
}

/** Names of tenants and users: what an operator types; also safe in a path and in a policy. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Who owns a sandbox, a workspace, a slice of ids. Never taken from a payload. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}

/** One string per owner; the parts are NUL-separated, so `a:b`+`c` and `a`+`b:c` differ. */
export const ownerKey = (owner: Owner): string => `${owner.tenant}\0${owner.user}`;
