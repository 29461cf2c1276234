import { describe, expect, it } from 'vitest';
import { cgroupPlaces } from '../../../adapters/sandbox/cgroup/places.ts';
import { groupSettings } from '../../../adapters/sandbox/cgroup/settings.ts';
import { SANDBOX_LIMITS } from '../../../core/limits.ts';

const V1 = [
  '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct',
  '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
  '39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids',
  '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
].join('\n');

describe('where this process stands among control groups', () => {
  it('version 1: one directory per hierarchy, below our own group and never above', () => {
    const own = '9:name=systemd:/\n8:pids:/a\n4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n';
    expect(cgroupPlaces(V1, own, () => 'hugetlb\n')).toEqual([
      { version: 1, controllers: ['pids'], dir: '/sys/fs/cgroup/pids/a' },
      { version: 1, controllers: ['memory'], dir: '/sys/fs/cgroup/memory/a/b' },
      { version: 1, controllers: ['cpu'], dir: '/sys/fs/cgroup/cpu,cpuacct' },
    ]);
  });

  it('version 2: the controllers that our own group was given', () => {
    const mounts = '30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate';
    const asked: string[] = [];
    const places = cgroupPlaces(mounts, '0::/user.slice/app.scope\n', (dir) => {
      asked.push(dir);
      return 'cpu memory pids io\n';
    });
    expect(places).toEqual([{ version: 2, controllers: ['memory', 'pids', 'cpu'], dir: '/sys/fs/cgroup/user.slice/app.scope' }]);
    expect(asked).toEqual(['/sys/fs/cgroup/user.slice/app.scope']);
    expect(cgroupPlaces(mounts, '0::/user.slice/app.scope\n', () => '')).toEqual([]);
  });

  it('a mount that shows a part of the hierarchy only', () => {
    const mounts = '35 31 0:32 /docker/c1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory';
    expect(cgroupPlaces(mounts, '4:memory:/docker/c1/x\n', () => '')[0]?.dir).toBe('/sys/fs/cgroup/memory/x');
    expect(cgroupPlaces(mounts, '4:memory:/elsewhere\n', () => '')).toEqual([]);
  });

  it('nothing mounted, nothing found', () => {
    expect(cgroupPlaces('22 27 0:21 / /proc rw - proc proc rw', '4:memory:/\n0::/\n', () => '')).toEqual([]);
  });
});

describe('what a group says', () => {
  const limits = { ...SANDBOX_LIMITS, memoryMiB: 256, pids: 64, cpus: 0.5 };
  const controllers = ['memory', 'pids', 'cpu'] as const;

  it('version 1', () => {
    expect(groupSettings({ version: 1, controllers, dir: '' }, limits).map(({ file, value }) => `${file}=${value}`)).toEqual([
      'memory.limit_in_bytes=268435456',
      'memory.memsw.limit_in_bytes=268435456',
      'pids.max=64',
      'cpu.cfs_period_us=100000',
      'cpu.cfs_quota_us=50000',
    ]);
  });

  it('version 2, and only what its place has', () => {
    const say = (names: readonly ('memory' | 'pids' | 'cpu')[]) =>
      groupSettings({ version: 2, controllers: names, dir: '' }, limits).map(({ file, value }) => `${file}=${value}`);
    expect(say(controllers)).toEqual(['memory.max=268435456', 'memory.swap.max=0', 'pids.max=64', 'cpu.max=50000 100000']);
    expect(say(['pids'])).toEqual(['pids.max=64']);
  });
});
