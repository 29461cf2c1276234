import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKernel, type KernelOptions } from '../../adapters/compose.ts';
import type { LocalKernel } from '../../adapters/kernel.ts';
import type { CompiledConfig } from '../../core/config.ts';
import type { KernelEvent } from '../../core/events.ts';
import type { RunView } from '../../core/kernel.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { PlacementName, RunState } from '../../core/run/types.ts';
import { testConfig } from './run-world.ts';

export interface E2e extends AsyncDisposable {
  readonly kernel: LocalKernel;
  readonly stateDir: string;
  /** The policy bundle this kernel polls: a copy that a test may edit. */
  readonly policyDir: string;
  /** Posts a message of the user and waits until its run has stopped. */
  turn(body: string, options?: { placement?: PlacementName; thread?: string; user?: string }): Promise<RunView>;
  post(body: string, options?: { placement?: PlacementName; thread?: string; user?: string }): Promise<string>;
  /** Waits until a run is in one of the states (default: ended or parked). */
  until(run: string, states?: readonly RunState[]): Promise<RunView>;
  /** Waits for the first event that fits. */
  event(run: string, fits: (event: KernelEvent) => boolean): Promise<KernelEvent>;
  /** Host pids of the processes of a sandbox generation; the guest first. */
  guestPid(generation: string): number;
}

export interface E2eOptions {
  readonly placement?: PlacementName;
  readonly scenario?: string;
  readonly config?: Partial<CompiledConfig>;
  readonly kernel?: KernelOptions;
  readonly users?: readonly string[];
  /** An existing state directory, left in place at the end. */
  readonly stateDir?: string;
}

const STOPPED: readonly RunState[] = ['completed', 'failed', 'cancelled', 'parked'];

/** A real kernel on a fresh state directory: real store, real policy, real sandboxes. */
export async function e2e(options: E2eOptions = {}): Promise<E2e> {
  const stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), 'ow-'));
  const policyDir = mkdtempSync(join(tmpdir(), 'owp-'));
  cpSync('policies', policyDir, { recursive: true });
  const config = testConfig({
    stateDir,
    placement: options.placement ?? 'persistent-per-user',
    model: { gateway: 'scripted', scenario: options.scenario ?? 'survey' },
    policy: { dir: policyDir },
    capacity: { ...CAPACITY, policyPollMs: 50, heartbeatMs: 500, leaseMs: 3000 },
    ...options.config,
  });
  const kernel = await createKernel(config, options.kernel);
  for (const name of options.users ?? ['ada']) {
    if ((await kernel.listUsers('default')).every((user) => user.name !== name))
      await kernel.addUser({ tenant: 'default', name, roles: ['user'] });
  }
  await kernel.start();
  const waitFor = async <Found>(look: () => Promise<Found | undefined>): Promise<Found> => {
    for (let cursor = 0; ; ) {
      const found = await look();
      if (found !== undefined) return found;
      await kernel.eventsChanged(cursor, 1000);
      cursor = (await kernel.events(cursor, {}, 1000)).at(-1)?.cursor ?? cursor;
    }
  };
  const self: E2e = {
    kernel,
    stateDir,
    policyDir,
    async post(body, { user = 'ada', placement, thread } = {}) {
      const posted = await kernel.post({ tenant: 'default', user, body, ...(placement && { placement }), ...(thread && { thread }) });
      return posted.run.id;
    },
    turn: async (body, more) => self.until(await self.post(body, more)),
    until: (run, states = STOPPED) =>
      waitFor(async () => {
        const view = await kernel.showRun(run);
        return states.includes(view.run.state) ? view : undefined;
      }),
    event: (run, fits) => waitFor(async () => (await kernel.events(0, { run }, 1000)).find(fits)),
    guestPid: (generation) => guestPid(generation),
    async [Symbol.asyncDispose]() {
      await kernel.close();
      rmSync(policyDir, { recursive: true });
      if (options.stateDir === undefined) rmSync(stateDir, { recursive: true });
    },
  };
  return self;
}

/** The guest process of a sandbox: runs our bundle and has this generation's socket directory among its mounts. */
function guestPid(generation: string): number {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const argv = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      if (!argv.some((item) => item.endsWith('guest.cjs')) || argv.length > 3) continue;
      if (readFileSync(`/proc/${entry}/mountinfo`, 'utf8').includes(generation) && readlinkSync(`/proc/${entry}/exe`).includes('node'))
        return Number(entry);
    } catch {
      // It ended while we looked.
    }
  }
  throw new Error(`no guest of ${generation}`);
}

/** A real repository with three files and two commits, as a git bundle. */
export function smallRepository(): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'ow-repo-'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.test', '-c', 'init.defaultBranch=main', ...args], { cwd: dir });
  git('init', '-q');
  execFileSync(
    'sh',
    ['-c', 'echo "# Small" > README.md; echo "export const answer = 42;" > answer.js; mkdir docs; echo notes > docs/notes.md'],
    { cwd: dir },
  );
  git('add', '.');
  git('commit', '-qm', 'First');
  execFileSync('sh', ['-c', 'echo more >> docs/notes.md'], { cwd: dir });
  git('commit', '-qam', 'Second');
  const bundle = git('bundle', 'create', '-q', '-', 'HEAD', 'main');
  rmSync(dir, { recursive: true });
  return bundle;
}
