import { lstat, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../sandbox/remove-tree.ts';
import { lockStateDir } from '../../store/state-lock.ts';
import type { SetupHost } from './host.ts';
import type { Added } from './receipt.ts';
import { mustRun } from './step.ts';

export interface UndoResult {
  readonly id: Added['kind'];
  /** `kept`: still needed, or not ours to remove; `manual`: somebody with the right has to do it. */
  readonly state: 'removed' | 'planned' | 'kept' | 'manual' | 'failed';
  readonly detail: string;
  readonly command?: string;
}

export interface UndoOptions {
  readonly dryRun: boolean;
  /** Also removes a state directory with everything in it: threads, workspaces, the ledger. */
  readonly deleteState: boolean;
  /** State directories that may hold files of the sub-ids. */
  readonly stateDirs: readonly string[];
  readonly tables?: { readonly uids: string; readonly gids: string };
}

interface UndoPlan {
  readonly detail: string;
  readonly command: string;
  readonly privileged: boolean;
  readonly act: (prefix: readonly string[]) => Promise<void>;
}

/** Takes one thing away again, or with `dryRun` only says how. Never rejects. What is `removed` leaves the receipt, the rest stays in it. */
export async function undo(entry: Added, host: SetupHost, options: UndoOptions): Promise<UndoResult> {
  const id = entry.kind;
  let command: string | undefined;
  try {
    const plan = await planOf(entry, host, options);
    if ('state' in plan) return { id, ...plan };
    command = plan.command;
    const prefix = plan.privileged ? await host.privilege() : [];
    if (prefix === undefined) return { id, state: 'manual', detail: `${plan.detail}; this needs root`, command };
    if (options.dryRun) return { id, state: 'planned', detail: plan.detail, command };
    await plan.act(prefix);
    return { id, state: 'removed', detail: plan.detail };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return command === undefined ? { id, state: 'failed', detail } : { id, state: 'failed', detail, command };
  }
}

type Settled = Pick<UndoResult, 'state' | 'detail'>;

function planOf(entry: Added, host: SetupHost, options: UndoOptions): Promise<UndoPlan | Settled> {
  switch (entry.kind) {
    case 'packages':
      return planPackages(entry.names, host);
    case 'sub-ids':
      return planSubIds(entry, host, options);
    case 'opa':
      return planOpa(entry.path);
    case 'state-directory':
      return planState(entry.path, options);
  }
}

/** Only when nothing else goes with them: what depends on them came later and is somebody else's. */
async function planPackages(names: readonly string[], host: SetupHost): Promise<UndoPlan | Settled> {
  const apt = host.which('apt-get');
  if (apt === undefined) return { state: 'failed', detail: 'apt-get is missing' };
  const { stdout, code, stderr } = await host.run(apt, ['remove', '--simulate', ...names]);
  if (code !== 0) throw new Error(stderr.trim().split('\n').at(-1) ?? 'apt-get failed');
  const removed = [...stdout.matchAll(/^Remv (\S+)/gm)].map(([, name = '']) => name);
  const others = removed.filter((name) => !names.includes(name));
  if (others.length > 0) return { state: 'kept', detail: `${names.join(', ')}: ${others.join(', ')} would go with them` };
  if (removed.length === 0) return { state: 'removed', detail: `${names.join(', ')}: not installed any more` };
  const argv = ['remove', '--yes', ...removed];
  return {
    detail: `packages ${removed.join(', ')}`,
    command: ['apt-get', ...argv].join(' '),
    privileged: true,
    act: (prefix) => mustRun(host, [...prefix, apt, ...argv]),
  };
}

async function planSubIds(
  { user, first, last }: Extract<Added, { kind: 'sub-ids' }>,
  host: SetupHost,
  { stateDirs, deleteState, dryRun, tables = { uids: '/etc/subuid', gids: '/etc/subgid' } }: UndoOptions,
): Promise<UndoPlan | Settled> {
  const range = `${first}-${last}`;
  const line = `${user}:${first}:${last - first + 1}`;
  const texts = await Promise.all([tables.uids, tables.gids].map((file) => readFile(file, 'utf8').catch(() => '')));
  if (!texts.some((text) => text.split('\n').includes(line))) return { state: 'removed', detail: `${line}: not there any more` };
  for (const dir of dryRun && deleteState ? [] : stateDirs) {
    // Another range later would give the files of one user to another.
    if (await holdsUsers(dir)) return { state: 'kept', detail: `${range}: workspaces in ${dir} belong to these ids (see --delete-state)` };
  }
  const usermod = host.which('usermod');
  const argv = ['--del-subuids', range, '--del-subgids', range, user];
  return {
    detail: `sub-ids ${line}`,
    command: ['usermod', ...argv].join(' '),
    privileged: true,
    async act(prefix) {
      if (usermod !== undefined) return mustRun(host, [...prefix, usermod, ...argv]);
      if (prefix.length > 0) throw new Error(`usermod is missing; remove ${line} from ${tables.uids} and ${tables.gids} as root`);
      for (const [index, file] of [tables.uids, tables.gids].entries()) {
        await writeFile(
          file,
          (texts[index] ?? '')
            .split('\n')
            .filter((one) => one !== line)
            .join('\n'),
        );
      }
    },
  };
}

async function planOpa(path: string): Promise<UndoPlan | Settled> {
  if (!(await exists(path))) return { state: 'removed', detail: `${path}: not there any more` };
  return { detail: path, command: `rm -r ${path}`, privileged: false, act: () => rm(path, { recursive: true }) };
}

async function planState(path: string, { deleteState }: UndoOptions): Promise<UndoPlan | Settled> {
  if (!(await exists(path))) return { state: 'removed', detail: `${path}: not there any more` };
  const empty = (await readdir(path)).length === 0;
  if (empty) return { detail: `${path} (empty)`, command: `rmdir ${path}`, privileged: false, act: () => rmdir(path) };
  if (!deleteState) return { state: 'kept', detail: `${path}: users, threads and workspaces are in it (see --delete-state)` };
  return { detail: `${path} with all in it`, command: `rm -r ${path}`, privileged: false, act: () => removeState(path) };
}

/** A directory that a kernel owns is not removed. */
async function removeState(path: string): Promise<void> {
  const lock = await lockStateDir(path);
  try {
    await removeTree(path);
  } finally {
    await lock.release();
  }
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function holdsUsers(stateDir: string): Promise<boolean> {
  const entries = await Promise.all(['workspaces', 'homes'].map((name) => readdir(join(stateDir, name)).catch(() => [])));
  return entries.flat().length > 0;
}
