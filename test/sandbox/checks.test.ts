import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { checkBubblewrap, isNoexec } from '../../adapters/sandbox/bubblewrap/checks.ts';

describe('checks of the bubblewrap engine', () => {
  it('every check that fails names what mends it', async () => {
    const checks = await checkBubblewrap({ stateDir: tmpdir() });
    expect(checks.map(({ id }) => id)).toEqual(expect.arrayContaining(['bubblewrap.bwrap', 'bubblewrap.newuidmap', 'bubblewrap.sub-ids']));
    for (const check of checks.filter(({ ok }) => !ok)) expect(check.fix, check.id).toBeTruthy();
  });

  it('a state directory on a noexec file system is told by its own mount, not by one above', () => {
    const mounts = [
      '20 1 8:1 / / rw,relatime - ext4 /dev/sda rw',
      '21 20 8:2 / /home rw,nosuid,noexec - ext4 /dev/sdb rw',
      '22 21 8:3 / /home/ok rw - ext4 /dev/sdc rw',
    ].join('\n');
    expect(isNoexec(mounts, '/home/user/state')).toBe(true);
    expect(isNoexec(mounts, '/home/ok/state')).toBe(false);
    expect(isNoexec(mounts, '/homely')).toBe(false);
    expect(isNoexec(`${mounts}\n23 22 0:9 / /home/ok rw,noexec - tmpfs t rw`, '/home/ok/state')).toBe(true);
  });
});
