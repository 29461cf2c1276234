import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkCgroups, requireLimits } from '../../../adapters/sandbox/cgroup/check.ts';
import { type CgroupSources, findCgroups } from '../../../adapters/sandbox/cgroup/find.ts';
import { openCgroups } from '../../../adapters/sandbox/cgroup/groups.ts';
import { SANDBOX_LIMITS } from '../../../core/limits.ts';
import { systemClock } from '../../../core/seams/clock.ts';

/** A tree of files that stands for a control group file system of version 2. */
describe('control groups of version 2, on a made tree', () => {
  let dir: string;
  let own: string;
  let sources: CgroupSources;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ow-cg-'));
    own = join(dir, 'cg', 'app.scope');
    mkdirSync(own, { recursive: true });
    sources = { mountinfo: join(dir, 'mountinfo'), own: join(dir, 'own'), pid: process.pid };
    writeFileSync(sources.mountinfo, `30 25 0:26 / ${join(dir, 'cg')} rw - cgroup2 cgroup2 rw\n`);
    writeFileSync(sources.own, '0::/app.scope\n');
    group({ controllers: 'cpu memory pids', procs: `${process.ppid}\n${process.pid}\n` });
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  function group({ controllers, procs }: { controllers: string; procs: string }): void {
    writeFileSync(join(own, 'cgroup.controllers'), `${controllers}\n`);
    writeFileSync(join(own, 'cgroup.subtree_control'), '');
    writeFileSync(join(own, 'cgroup.procs'), procs);
  }

  it('a delegated group with our own processes bounds all', async () => {
    expect(await findCgroups(sources)).toMatchObject({ bounded: ['memory', 'pids', 'cpu'], missing: [] });
    await expect(requireLimits(sources)).resolves.toBeUndefined();
    expect((await checkCgroups(sources)).every(({ ok }) => ok)).toBe(true);
  });

  it('our processes move into a leaf, then the controllers are opened for what comes below', async () => {
    const groups = await openCgroups(SANDBOX_LIMITS, systemClock, sources);
    expect(readdirSync(own)).toContain('outwork-kernel');
    expect(readFileSync(join(own, 'outwork-kernel', 'cgroup.procs'), 'utf8')).toBe(String(process.pid));
    expect(readFileSync(join(own, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
    expect(groups.dirsOf('g1')).toEqual([join(own, 'outwork-g1')]);
    // The made tree grows no files in a new group: the limit cannot be written, and nothing may run without it.
    await expect(groups.make('g1')).rejects.toMatchObject({ code: 'start_failed' });
    expect(readdirSync(own)).not.toContain('outwork-g1');
  });

  it('a group with processes of others is not ours to arrange', async () => {
    // PID 1 is nobody's child of ours.
    group({ controllers: 'cpu memory pids', procs: '1\n' });
    const { bounded, missing } = await findCgroups(sources);
    expect(bounded).toEqual([]);
    expect(missing[0]).toMatch(/^memory: .*not ours \(1\)/);
  });

  it('what is not delegated is a warning of `doctor` with a command, and refused in production as `limits_unenforceable`', async () => {
    group({ controllers: 'cpu', procs: '' });
    const checks = await checkCgroups(sources);
    expect(checks.filter(({ ok }) => !ok).map(({ id, warning }) => [id, warning])).toEqual([
      ['limits.memory', true],
      ['limits.pids', true],
    ]);
    for (const check of checks.filter(({ ok }) => !ok)) expect(check.fix).toMatch(/Delegate=yes/);
    await expect(requireLimits(sources)).rejects.toMatchObject({
      code: 'limits_unenforceable',
      hint: expect.stringMatching(/Delegate=yes/),
    });
    rmSync(join(own, 'cgroup.subtree_control'));
    expect((await findCgroups(sources)).missing).toHaveLength(3);
  });
});
