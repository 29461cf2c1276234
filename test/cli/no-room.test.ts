import { expect, it } from 'vitest';
import { diskFullError } from '../../adapters/no-room.ts';
import { PolicyError } from '../../core/errors.ts';

const failed = (code: string) => Object.assign(new Error(`${code}: write`), { code });

it.each(['ENOSPC', 'EDQUOT'])('%s that nobody has named is told as `disk_full`, with what mends it', (code) => {
  for (const error of [failed(code), new Error('outer', { cause: failed(code) })]) {
    expect(diskFullError(error)).toMatchObject({ code: 'disk_full', retryable: true, hint: expect.stringContaining('inodes') });
  }
});

it('control: any other error stays what it is, and so does one that has its name', () => {
  const named = new PolicyError('policy_malformed', 'not kept', { cause: failed('ENOSPC') });
  for (const error of [failed('EACCES'), named, 'text', undefined]) expect(diskFullError(error)).toBe(error);
});
