import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import type { RunView } from '../../core/kernel.ts';
import { CEILINGS } from '../../core/limits.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { type E2e, type E2eOptions, e2e, processWith, scenario, uniqueSeconds } from '../support/e2e.ts';

/** Of one window that does not end. */
const ceilings = (user: object) => ({ ceilings: { ...CEILINGS, windowMs: Number.MAX_SAFE_INTEGER, user: { ...CEILINGS.user, ...user } } });

/** Why the run's last call was refused; undefined when none was. */
const refusal = async (world: E2e, { run }: RunView) =>
  (await world.kernel.events(0, { run: run.id }, 1000)).find(({ type }) => type === 'call.refused')?.data.reason;

/** As if the ledger did not keep what was spent. */
function forgetSpent(stateDir: string): void {
  const file = new DatabaseSync(join(stateDir, 'outwork.db'));
  file.exec('update permits set spent = null, spent_at_ms = null');
  file.close();
}

describe.each(PLACEMENTS)('a kernel that starts anew, under %s', (placement) => {
  it('finding 3: a restart gives a user no fresh budget; control: without the ledger it would', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
    // Room for what one command reserves (two streams of 64 KiB), and 2,000 bytes for what commands have printed.
    const config = ceilings({ outputBytes: 2 * 64 * 1024 + 2000 });
    const print = scenario('print', [['sh', '-c', 'head -c 3000 /dev/zero | tr "\\0" x']]);
    const options = { placement, stateDir, config, scenario: print, users: ['ada', 'bo'] };
    const turn = async (user = 'ada') => {
      await using world = await e2e(options);
      return refusal(world, await world.turn('go', { user }));
    };
    expect(await turn()).toBeUndefined();
    for (const _ of [1, 2]) expect(await turn()).toBe('user ada has used up outputBytes (133072)');
    expect(await turn('bo')).toBeUndefined();
    forgetSpent(stateDir);
    expect(await turn()).toBeUndefined();
    rmSync(stateDir, { recursive: true });
  });

  it('a command that a killed kernel left open counts all it had reserved; control: without the ledger nothing of it', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'ow-'));
    const seconds = uniqueSeconds(600);
    // Two commands reserve 120 s each.
    const options: E2eOptions = {
      placement,
      stateDir,
      config: ceilings({ wallMs: 200_000 }),
      scenario: scenario('sleep', [['sleep', seconds]]),
    };
    await (await e2e(options)).kernel.close();
    const store = await openSqliteStore({ file: join(stateDir, 'outwork.db') });
    await store.threads.post({ tenant: 'default', actor: 'ada', origin: 'operator', body: 'go', nowMs: Date.now() });
    await store.close();
    const child = spawn(process.execPath, ['test/support/kernel-child.ts', JSON.stringify(options)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await processWith(seconds);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const turn = async () => {
      await using world = await e2e({ ...options, scenario: scenario('short', [['true']]) });
      return refusal(world, await world.turn('go'));
    };
    expect(await turn()).toBe('user ada has used up wallMs (200000)');
    forgetSpent(stateDir);
    expect(await turn()).toBeUndefined();
    rmSync(stateDir, { recursive: true });
  });
});
