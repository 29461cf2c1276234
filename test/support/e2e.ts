import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKernel, type KernelOptions } from '../../adapters/compose.ts';
import type { LocalKernel } from '../../adapters/kernel.ts';
import { createScriptedGateway } from '../../adapters/model/scripted-gateway.ts';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { CompiledConfig } from '../../core/config.ts';
import type { KernelEvent } from '../../core/events.ts';
import type { Json } from '../../core/json.ts';
import type { RunView } from '../../core/kernel.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { PlacementName, RunState } from '../../core/run/types.ts';
import type { ModelGateway, ModelRequest } from '../../core/seams/model-gateway.ts';
import { testConfig } from './run-world.ts';
import { allArguments } from './sandbox-processes.ts';

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
  /** Host pid of the guest of a sandbox generation. */
  guestPid(generation: string): number;
  /** Turns from now on follow another scenario; the kernel, its sandboxes and its state stay. */
  switchScenario(scenario: string): Promise<void>;
  /** Closes this kernel and opens another on the same state directory. */
  reopen(options?: Pick<E2eOptions, 'scenario' | 'placement'>): Promise<E2e>;
}

export interface E2eOptions {
  readonly placement?: PlacementName;
  readonly scenario?: string;
  readonly config?: Partial<CompiledConfig>;
  /** Over the shorter times that tests use. */
  readonly capacity?: Partial<CompiledConfig['capacity']>;
  readonly kernel?: KernelOptions;
  readonly users?: readonly string[];
  /** Called before each model call is answered. */
  readonly onModel?: (request: ModelRequest, step: number) => Promise<void>;
  /** Programs whose commands this kernel's policy data calls pure, whatever their operands. */
  readonly pure?: readonly string[];
  /** Capabilities that this kernel's policy data asks a person for. */
  readonly ask?: readonly string[];
  /** An existing state directory, left in place at the end. */
  readonly stateDir?: string;
}

const STOPPED: readonly RunState[] = ['completed', 'failed', 'cancelled', 'parked'];

/** A real kernel on a fresh state directory: real store, real policy, real sandboxes. */
export async function e2e(options: E2eOptions = {}): Promise<E2e> {
  const stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), 'ow-'));
  const policyDir = mkdtempSync(join(tmpdir(), 'owp-'));
  cpSync('policies', policyDir, { recursive: true });
  for (const program of options.pure ?? []) addPure(policyDir, program);
  if (options.ask !== undefined) askFor(policyDir, options.ask);
  const config = testConfig({
    stateDir,
    placement: options.placement ?? 'persistent-per-user',
    model: { gateway: 'scripted', scenario: options.scenario ?? 'survey' },
    policy: { dir: policyDir },
    capacity: { ...CAPACITY, policyPollMs: 50, heartbeatMs: 500, leaseMs: 3000, ...options.capacity },
    ...options.config,
  });
  let gateway = await createScriptedGateway({ scenario: config.model.scenario });
  const generate: ModelGateway['generate'] = async (request, context, signal, onDelta) => {
    await options.onModel?.(request, context.step);
    return gateway.generate(request, context, signal, onDelta);
  };
  const model = { port: 'model', name: 'switchable', create: () => ({ generate }) } as const;
  const kernel = await createKernel(config, { ...options.kernel, adapters: [model, ...(options.kernel?.adapters ?? [])] });
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
    async switchScenario(name) {
      gateway = await createScriptedGateway({ scenario: name });
    },
    async reopen(more = {}) {
      await kernel.close();
      return e2e({ ...options, ...more, placement: more.placement ?? config.placement, stateDir });
    },
    async [Symbol.asyncDispose]() {
      await kernel.close();
      rmSync(policyDir, { recursive: true });
      if (options.stateDir === undefined) rmSync(stateDir, { recursive: true });
    },
  };
  return self;
}

export function askFor(policyDir: string, capabilities: readonly string[]): void {
  const file = join(policyDir, 'data', 'call.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^ask: \[.*\]$/m, `ask: [${capabilities.join(', ')}]`));
}

function addPure(policyDir: string, program: string): void {
  const file = join(policyDir, 'data', 'effects.yaml');
  const row = `  ${program}:\n    - { words: [], class: pure, flags: '', options: [], prefixes: [], operands: true }\n`;
  writeFileSync(file, readFileSync(file, 'utf8').replace('programs:\n', `programs:\n${row}`));
}

/** Host pid of the `sleep` with this argument, waited for: a command is known to run when the kernel's table shows it. */
export async function processWith(argument: string): Promise<number> {
  for (;;) {
    for (const { pid, argv } of allArguments()) if (argv[0] === 'sleep' && argv.includes(argument)) return pid;
    await new Promise((wake) => setTimeout(wake, 10));
  }
}

/** The guest process of a sandbox: runs our bundle and has this generation's socket directory among its mounts. */
export function guestPid(generation: string): number {
  for (const { pid, argv } of allArguments()) {
    if (argv.some((item) => item.endsWith('guest.cjs')) && argv.length <= 3 && isNodeOf(pid, generation)) return pid;
  }
  throw new Error(`no guest of ${generation}`);
}

function isNodeOf(pid: number, generation: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(generation) && readlinkSync(`/proc/${pid}/exe`).includes('node');
  } catch {
    return false;
  }
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

/** One call of a tool that the scripted model makes. */
export interface ToolStep {
  readonly tool: string;
  readonly args: { readonly [name: string]: Json };
}

/** A scenario of one command a step, as a file; `background` is started first, declared as such. */
export function scenario(name: string, commands: readonly (readonly string[])[], more: { background?: readonly string[] } = {}): string {
  const shell = (argv: readonly string[], args: ToolStep['args'] = {}): ToolStep => ({ tool: 'shell', args: { argv, ...args } });
  const first = more.background === undefined ? [] : [shell(more.background, { background: true })];
  return scenarioFile(name, [...first, ...commands.map((argv) => shell(argv))]);
}

/** A scenario of one tool call a step, `{{result.<step>.0.…}}` filled from the steps before. */
export const workload = (calls: readonly ToolStep[], reply?: string): string => scenarioFile('workload', calls, reply);

function scenarioFile(name: string, calls: readonly ToolStep[], reply = 'Done.'): string {
  const steps = [
    ...calls.map(({ tool, args }) => ({ content: 'next', toolCalls: [{ name: tool, args }] })),
    { content: reply, toolCalls: [] },
  ];
  const file = join(mkdtempSync(join(tmpdir(), 'ow-scenario-')), `${name}.json`);
  writeFileSync(file, JSON.stringify({ name, description: name, steps }));
  return file;
}

/** Denies a program in the live data, and waits until the kernel runs on it. */
export async function denyProgram({ kernel, policyDir }: E2e, program: string): Promise<void> {
  const before = (await kernel.policyStatus()).digests.data;
  const file = join(policyDir, 'data', 'call.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replace('denied_programs: []', `denied_programs: [${program}]`));
  while ((await kernel.policyStatus()).digests.data === before) await kernel.eventsChanged(Number.MAX_SAFE_INTEGER - 1, 50);
}

/** Recorded outcomes of the commands a run executed, in order. */
export const commandsOf = (view: RunView): CommandOutcome[] =>
  view.calls.flatMap(({ capability, outcome }) =>
    capability === 'shell.exec' && outcome?.kind === 'result' ? [outcome.result as unknown as CommandOutcome] : [],
  );

/** A duration that no other process on this machine sleeps for, so that a command can be told by it. */
export const uniqueSeconds = (seconds: number): string => (seconds + Math.floor(Math.random() * 1e6) / 1e9).toFixed(9);
