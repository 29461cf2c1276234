import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runSetup, undoSetup } from '../../adapters/cli/commands/setup.ts';
import type { CommandContext } from '../../adapters/cli/context.ts';
import { processIo } from '../../adapters/cli/io.ts';
import { Output } from '../../adapters/cli/output.ts';
import type { CommandResult, SetupHost } from '../../adapters/cli/setup/host.ts';
import { type Added, readReceipt, receiptFile, writeReceipt } from '../../adapters/cli/setup/receipt.ts';
import type { SetupStep } from '../../adapters/cli/setup/step.ts';
import { BASE_PACKAGES, packagesStep, stateDirStep, subIdsStep } from '../../adapters/cli/setup/steps.ts';
import { type UndoOptions, undo } from '../../adapters/cli/setup/undo.ts';
import { lockStateDir } from '../../adapters/store/state-lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-undo-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const stateDir = () => join(dir, 'state', 'outwork');
const env = () => ({ PATH: dir, HOME: dir, XDG_STATE_HOME: join(dir, 'state') });
const tables = () => ({ uids: join(dir, 'subuid'), gids: join(dir, 'subgid') });
const receipt = () => readReceipt(receiptFile(env()));

/** A machine with these programs; root unless `nobody`. `on` answers a command. */
function host(
  programs: readonly string[],
  on: (line: string) => Partial<CommandResult> | undefined = () => undefined,
  nobody = false,
): SetupHost & { readonly ran: string[] } {
  const ran: string[] = [];
  return {
    env: env(),
    ran,
    which: (program) => (programs.includes(program) ? `/usr/bin/${program}` : undefined),
    run: async (command, args) => {
      const line = [command, ...args].join(' ');
      ran.push(line);
      return { code: 0, stdout: '', stderr: '', ...on(line) };
    },
    privilege: async () => (nobody ? undefined : []),
  };
}

/** A command context whose output is kept. */
function context(): CommandContext & { readonly text: () => string } {
  let text = '';
  const sink = { write: (chunk: string) => (text += chunk) };
  const out = new Output({ json: false, stdout: sink, stderr: sink, env: {}, reader: { gone: false } });
  return { io: { ...processIo(), env: env(), cwd: dir }, out, global: { state: stateDir() }, text: () => text };
}

const take = (entry: Added, on: SetupHost, options: Partial<UndoOptions> = {}) =>
  undo(entry, on, { dryRun: false, deleteState: false, stateDirs: [stateDir()], tables: tables(), ...options });

describe('the receipt of set-up', () => {
  const user = { uid: 1500, name: 'keeper' };

  it('names what was added, and nothing that was there before', async () => {
    const programs = ['git', 'apt-get'];
    const on = (line: string) => {
      if (line.includes('install')) programs.push('bwrap', 'newuidmap');
      // The package is there and its program is off PATH: it is not set-up's.
      return line.startsWith('dpkg --status uidmap') ? { stdout: 'Package: uidmap\nStatus: install ok installed\n' } : undefined;
    };
    const steps = [packagesStep('packages', BASE_PACKAGES), subIdsStep(user, tables()), stateDirStep(stateDir())];
    expect(await runSetup(context(), steps, host(programs, on), false)).toBe(0);
    expect(await receipt()).toEqual([
      { kind: 'packages', names: ['bubblewrap'] },
      { kind: 'sub-ids', user: 'keeper', first: 100_000, last: 165_535 },
      { kind: 'state-directory', path: stateDir() },
    ]);
    expect(statSync(receiptFile(env())).mode & 0o777).toBe(0o600);
    expect(await runSetup(context(), steps, host(programs, on), false)).toBe(0);
    expect(await receipt()).toHaveLength(3);
  });

  it('is not written by a dry run, and holds what an interrupted set-up did before it broke off', async () => {
    const broken: SetupStep = { id: 'broken', plan: () => Promise.reject(new Error('no')) };
    expect(await runSetup(context(), [stateDirStep(stateDir())], host([]), true)).toBe(0);
    expect(await receipt()).toEqual([]);
    expect(await runSetup(context(), [stateDirStep(stateDir()), broken], host([]), false)).toBe(3);
    expect(await receipt()).toEqual([{ kind: 'state-directory', path: stateDir() }]);
  });

  it('that is damaged, or names what set-up never adds, removes nothing', async () => {
    mkdirSync(join(dir, 'state'));
    for (const text of [
      '{',
      '{"schema":1,"added":[{"kind":"opa","path":"/usr/bin"}]}',
      '{"schema":1,"added":[{"kind":"packages","names":["-y"]}]}',
    ]) {
      writeFileSync(receiptFile(env()), text);
      await expect(undoSetup(context(), host(['apt-get']), {})).rejects.toMatchObject({ code: 'config_malformed' });
    }
  });
});

describe('setup --undo', () => {
  it('takes back everything newest first, forgets it, and then has nothing to do', async () => {
    const opa = join(dir, '.cache', 'outwork', 'opa-1.22.3');
    mkdirSync(opa, { recursive: true });
    mkdirSync(stateDir(), { recursive: true, mode: 0o700 });
    await writeReceipt(receiptFile(env()), [
      { kind: 'packages', names: ['bubblewrap'] },
      { kind: 'state-directory', path: stateDir() },
      { kind: 'opa', path: opa },
    ]);
    const root = host(['apt-get'], (line) => (line.includes('--simulate') ? { stdout: 'Remv bubblewrap [0.8.0]\n' } : undefined));
    const dry = context();
    expect(await undoSetup(dry, root, { dryRun: true })).toBe(0);
    expect(dry.text().match(/^planned +\S+/gm)).toEqual(['planned opa', 'planned state-directory', 'planned packages']);
    expect(root.ran).toEqual(['/usr/bin/apt-get remove --simulate bubblewrap']);
    expect(await receipt()).toHaveLength(3);

    expect(await undoSetup(context(), root, {})).toBe(0);
    expect(root.ran.at(-1)).toBe('/usr/bin/apt-get remove --yes bubblewrap');
    expect([existsSync(opa), existsSync(stateDir()), existsSync(receiptFile(env()))]).toEqual([false, false, false]);
    const again = context();
    expect(await undoSetup(again, root, {})).toBe(0);
    expect(again.text()).toContain('nothing to undo');
  });

  it('keeps packages that others need by now', async () => {
    const root = host(['apt-get'], () => ({ stdout: 'Remv flatpak\nRemv bubblewrap\n' }));
    expect(await take({ kind: 'packages', names: ['bubblewrap'] }, root)).toMatchObject({
      state: 'kept',
      detail: expect.stringContaining('flatpak'),
    });
    expect(root.ran.filter((line) => line.includes('--yes'))).toEqual([]);
  });

  it('without the right names the command and keeps the receipt', async () => {
    await writeReceipt(receiptFile(env()), [{ kind: 'packages', names: ['bubblewrap'] }]);
    const out = context();
    const nobody = host(['apt-get'], () => ({ stdout: 'Remv bubblewrap\n' }), true);
    expect(await undoSetup(out, nobody, {})).toBe(3);
    expect(out.text()).toContain('run: apt-get remove --yes bubblewrap');
    expect(await receipt()).toHaveLength(1);
  });

  it('a state directory with something in it stays, and so do the ids of its workspaces, until --delete-state', async () => {
    mkdirSync(join(stateDir(), 'workspaces', 'leaf'), { recursive: true, mode: 0o700 });
    writeFileSync(tables().uids, 'ann:1:2\nkeeper:100000:65536\n');
    writeFileSync(tables().gids, 'keeper:100000:65536\n');
    const state = { kind: 'state-directory', path: stateDir() } as const;
    const ids = { kind: 'sub-ids', user: 'keeper', first: 100_000, last: 165_535 } as const;
    expect(await take(state, host([]))).toMatchObject({ state: 'kept' });
    expect(await take(ids, host([]))).toMatchObject({ state: 'kept' });
    expect(existsSync(stateDir())).toBe(true);

    expect(await take(state, host([]), { deleteState: true, dryRun: true })).toMatchObject({ state: 'planned' });
    expect(await take(state, host([]), { deleteState: true })).toMatchObject({ state: 'removed' });
    expect(await take(ids, host([]))).toMatchObject({ state: 'removed' });
    expect(existsSync(stateDir())).toBe(false);
    expect([readFileSync(tables().uids, 'utf8'), readFileSync(tables().gids, 'utf8')]).toEqual(['ann:1:2\n', '']);
  });

  it('does not delete a state directory under a running kernel', async () => {
    const lock = await lockStateDir(stateDir());
    const state = { kind: 'state-directory', path: stateDir() } as const;
    expect(await take(state, host([]), { deleteState: true })).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('kernel'),
    });
    expect(existsSync(join(stateDir(), 'kernel.lock'))).toBe(true);
    await lock.release();
    expect(await take(state, host([]), { deleteState: true })).toMatchObject({ state: 'removed' });
  });
});
