import { expect, it } from 'vitest';
import { diskFullError } from '../adapters/no-room.ts';
import { PolicyError } from '../core/errors.ts';

const failed = (code: string) => Object.assign(new Error(`${code}: write`), { code });

it.each<[string, Error]>([
  ['ENOSPC', failed('ENOSPC')],
  ['EDQUOT', failed('EDQUOT')],
  ['what SQLite calls so', Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })],
])('%s that nobody has named is told as `disk_full`, with what mends it', (_, full) => {
  for (const error of [full, new Error('outer', { cause: full })]) {
    expect(diskFullError(error)).toMatchObject({ code: 'disk_full', retryable: true, hint: expect.stringContaining('inodes') });
  }
});

it('control: any other error stays what it is, and so does one that has its name', () => {
  const named = new PolicyError('policy_malformed', 'not kept', { cause: failed('ENOSPC') });
  for (const error of [failed('EACCES'), named, 'text', undefined]) expect(diskFullError(error)).toBe(error);
});
