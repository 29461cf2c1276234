import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Membrane, SandboxChannel } from '../../adapters/membrane/channel.ts';
import { SandboxManager, userKey } from '../../adapters/sandbox/manager.ts';
import { SandboxError } from '../../core/errors.ts';
import { systemClock } from '../../core/seams/clock.ts';
import type { SandboxEngine } from '../../core/seams/sandbox-engine.ts';

const ADA = { tenant: 'default', user: 'ada' };
const noRoom = () => Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'ow-manager-'));
});
afterEach(() => rm(stateDir, { recursive: true }));

type Step = 'prepare' | 'open' | 'start';

/** A manager whose starts fail at one step with this error; everything before it leaves what it really leaves. */
function failingAt(step: Step, error: unknown) {
  const closed: string[] = [];
  const at = (here: Step) => {
    if (here === step) throw error;
  };
  const channel = (socketDir: string) =>
    ({
      socketPath: join(socketDir, 'membrane.sock'),
      ready: new Promise(() => {}),
      lost: new Promise(() => {}),
      close: async () => void closed.push(basename(socketDir)),
    }) as unknown as SandboxChannel;
  const membrane = {
    async open({ socketDir }: { socketDir: string }) {
      at('open');
      await writeFile(join(socketDir, 'membrane.sock'), '');
      return channel(socketDir);
    },
  } as unknown as Membrane;
  const engine = {
    name: 'bubblewrap',
    wall: 'namespaces',
    async prepareSocketDir({ socketDir }: { socketDir: string }) {
      await mkdir(socketDir, { recursive: true });
      at('prepare');
    },
    grantSocket: async () => {},
    start: async () => at('start'),
  } as unknown as SandboxEngine;
  const revoked: unknown[] = [];
  const tokens = { mint: async () => 'token', verify: async () => undefined, revoke: (what: unknown) => void revoked.push(what) };
  const manager = new SandboxManager({
    ...{ stateDir, engine, membrane, tokens, clock: systemClock, startMs: 1000, idleMs: 1000 },
    sliceOf: async () => 0,
    onEvent: () => {},
  });
  return { manager, closed, revoked };
}

describe.each<Step>(['prepare', 'open', 'start'])('a sandbox whose start fails (%s)', (step) => {
  it('leaves no socket directory, no listener and no token', async () => {
    const { manager, closed, revoked } = failingAt(step, new SandboxError('start_failed', 'not today'));
    await expect(manager.acquire(userKey(ADA), ADA)).rejects.toMatchObject({ code: 'start_failed', message: 'not today' });
    expect(await readdir(join(stateDir, 's'))).toEqual([]);
    expect(closed).toHaveLength(step === 'start' ? 1 : 0);
    expect(revoked).toHaveLength(1);
    expect(manager.count()).toEqual({ starting: 0, busy: 0, idle: 0, stopping: 0 });
  });

  it('is `disk_full`, with what mends it, when there was no room for something, however that was called', async () => {
    for (const error of [noRoom(), new SandboxError('start_failed', 'the membrane socket cannot be made', { cause: noRoom() })]) {
      const { manager } = failingAt(step, error);
      await expect(manager.acquire(userKey(ADA), ADA)).rejects.toMatchObject({
        code: 'disk_full',
        hint: 'free some room there, in bytes and inodes',
      });
    }
  });
});
