import { describe, expect, it } from 'vitest';
import { processLimits } from '../../adapters/sandbox/bubblewrap/rlimits.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';

const own = (core: string, size: string, files: string) =>
  [
    'Limit                     Soft Limit           Hard Limit           Units     ',
    `Max file size             unlimited            ${size}            bytes     `,
    `Max core file size        0                    ${core}            bytes     `,
    `Max open files            1024                 ${files}              files     `,
  ].join('\n');

describe('limits of each process of a sandbox', () => {
  const limits = { ...SANDBOX_LIMITS, fileMiB: 1, openFiles: 300 };

  it('are those of config; core dumps 1, so that a piped core_pattern refuses too', async () => {
    expect(await processLimits(limits, 'normal', own('unlimited', 'unlimited', '1048576'))).toEqual([
      '--core=1:1',
      '--fsize=1048576:1048576',
      '--nofile=300:300',
    ]);
  });

  it('are never above the kernel’s own, which an ordinary user could not raise', async () => {
    expect(await processLimits(limits, 'normal', own('0', '1000', '256'))).toEqual(['--core=0:0', '--fsize=1000:1000', '--nofile=256:256']);
  });

  it('T18 let no file grow where the owner is to clean up', async () => {
    expect(await processLimits(limits, 'clean-up', own('unlimited', 'unlimited', 'unlimited'))).toContain('--fsize=0:0');
  });
});
