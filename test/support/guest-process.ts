import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { ToolCommand } from '../../core/ports/placement.ts';
import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { ProcessTrees } from '../../harnesses/guest/process-trees.ts';
import { FakeMembrane } from './fake-membrane.ts';

export const SANDBOX_TOKEN = 'sandbox-token-of-a-test';

export interface GuestOptions {
  readonly env?: { readonly [name: string]: string };
  /** Descriptors that a careless starter leaves open, high enough that Node does not close them by itself. */
  readonly leak?: readonly number[];
  readonly answers?: FakeMembrane['answers'];
  /** In a process namespace of its own, as in a sandbox: /proc shows the guest and its tools only. */
  readonly ownProcesses?: boolean;
}

/** A guest as a real process, with real uids and gids, on a fake membrane, in a directory of its own. */
export interface GuestProcess extends AsyncDisposable {
  readonly membrane: FakeMembrane;
  readonly child: ChildProcess;
  readonly dir: string;
  readonly workspace: string;
  readonly home: string;
  readonly privateDir: string;
  readonly toolUid: number;
  readonly helperGid: number;
  readonly gids: readonly number[];
  readonly stderr: () => string;
  readonly exitCode: Promise<number | null>;
}

let started = 0;

/**
 * Starts a guest and waits for its control stream. Each has gids of its own, so that tests at the same time do not end each other's
 * processes.
 *
 * @throws Error when this process may not switch uids: these tests need root
 */
export async function startGuest(options: GuestOptions = {}): Promise<GuestProcess> {
  const guest = await spawnGuest(options);
  await Promise.race([
    guest.membrane.ready(),
    guest.exitCode.then((code) => {
      throw new Error(`The guest ended with ${code}: ${guest.stderr()}`);
    }),
  ]);
  return guest;
}

/** As `startGuest`, without waiting for anything. */
export async function spawnGuest(options: GuestOptions = {}): Promise<GuestProcess> {
  if (process.getuid?.() !== 0) throw new Error('Tests of the guest switch uids and gids: they need root');
  started += 1;
  const firstGid = 1_000_000 + process.pid * 2000 + (started % 50) * 40;
  const gids = Array.from({ length: 20 }, (_, i) => firstGid + i);
  const toolUid = firstGid; // Its own: a guest may stop all processes of its tool uid for a moment.
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'guest-')));
  chmodSync(dir, 0o755);
  const [workspace, home, privateDir] = [join(dir, 'workspace'), join(dir, 'home'), join(dir, 'private')];
  for (const path of [workspace, home]) {
    mkdirSync(path);
    chownSync(path, toolUid, firstGid);
  }
  mkdirSync(privateDir, { mode: 0o700 });
  const { file } = await ensureGuest();
  const bundle = join(dir, 'guest.cjs');
  copyFileSync(file, bundle);
  chmodSync(bundle, 0o644);
  const membrane = await FakeMembrane.listen(dir);
  Object.assign(membrane.answers, options.answers);

  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, `${SANDBOX_TOKEN}\n`, { mode: 0o600 });
  const token = openSync(tokenFile, 'r');
  rmSync(tokenFile);
  const namespace = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const [program = '', ...args] = [
    ...(options.ownProcesses === true ? namespace : []),
    ...leaking(options.leak ?? [], [process.execPath, bundle]),
  ];
  const child = spawn(program, args, {
    cwd: '/',
    env: {
      OUTWORK_SOCKET: membrane.socketPath,
      OUTWORK_TOOL_UID: String(toolUid),
      OUTWORK_GIDS: `${gids[0]}-${gids.at(-1)}`,
      OUTWORK_PRIVATE: privateDir,
      OUTWORK_WORKSPACE: workspace,
      HOME: home,
      PATH: '/usr/local/bin:/usr/bin:/bin',
      ...options.env,
    },
    stdio: ['ignore', 'ignore', 'pipe', token],
  });
  closeSync(token);
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const exitCode = new Promise<number | null>((resolve) => child.on('exit', resolve));
  return {
    membrane,
    child,
    dir,
    workspace,
    home,
    privateDir,
    toolUid,
    helperGid: firstGid,
    gids,
    exitCode,
    stderr: () => stderr,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exitCode;
      const trees = new ProcessTrees(toolUid, firstGid);
      for (const gid of gids) await trees.end(gid);
      await membrane[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** `argv` started by a shell that leaves these descriptors open. */
export const leaking = (fds: readonly number[], argv: readonly string[]): readonly string[] =>
  fds.length === 0 ? argv : ['bash', '-c', `${fds.map((fd) => `exec ${fd}</etc/hostname;`).join(' ')} exec "$@"`, 'bash', ...argv];

/** How a command of the run `run_1` ended. @throws Error with the code that the guest gave */
export async function execIn(
  { membrane }: GuestProcess,
  command: Partial<ToolCommand> & Pick<ToolCommand, 'argv'>,
): Promise<CommandOutcome> {
  const { exec, error } = await membrane.exec('run_1', command);
  if (exec === undefined) throw Object.assign(new Error(error?.message), { code: error?.code });
  return exec;
}
