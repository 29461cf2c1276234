import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBubblewrapEngine } from '../../adapters/sandbox/bubblewrap/engine.ts';
import { processTree } from '../../adapters/sandbox/bubblewrap/processes.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { kernelUsers } from '../support/sandbox-client.ts';

describe('a bubblewrap sandbox that does not start', () => {
  let dir: string;
  beforeEach(async () => {
    kernelUsers();
    dir = await mkdtemp(join('/tmp', 'ow-'));
    await writeFile(join(dir, 'guest.cjs'), '');
  });
  afterEach(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  async function start(init: string, startMs?: number) {
    await writeFile(join(dir, 'init.sh'), init);
    const files = { guestBundle: join(dir, 'guest.cjs'), initScript: join(dir, 'init.sh'), nodeBinary: process.execPath };
    const engine = createBubblewrapEngine({ stateDir: dir, ...files, clock: systemClock, ...(startMs === undefined ? {} : { startMs }) });
    const spec = { tenant: 't', user: 'u', generation: 'one', slice: 0, token: 'x', socketDir: join(dir, 's', 'one') };
    await engine.prepareSocketDir(spec);
    return engine.start({ ...spec, workspaceDir: join(dir, 'workspace', 'u'), homeDir: join(dir, 'home', 'u') });
  }

  /** Our own descendants whose command line names this test's state directory or the engine's programs. */
  async function leftovers(): Promise<string[]> {
    const lines = await Promise.all(
      (await processTree(process.pid)).map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
    );
    return lines.filter((line) => line.includes(dir) || line.startsWith('bwrap') || line.includes('init.sh'));
  }

  it('is a `timeout` when its init never comes up, and nothing is left', async () => {
    await expect(start('sleep 1000', 1000)).rejects.toMatchObject({ code: 'timeout', retryable: true });
    expect(await leftovers()).toEqual([]);
    expect(await readdir(join(dir, 'sandboxes')).catch(() => [])).toEqual([]);
  });

  it('is a `start_failed` with the last words of the init when that ends', async () => {
    await expect(start('echo no such luck >&2; exit 3')).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('no such luck'),
    });
    expect(await leftovers()).toEqual([]);
  });

  it('is no failure of the start when the guest ends at once: `ended` tells', async () => {
    const handle = await start('echo up >&4; exec 4>&-; echo a last word; exit 9');
    expect((await handle.ended).reason).toMatch(/exit 9.*a last word/s);
    expect(await leftovers()).toEqual([]);
  });
});
