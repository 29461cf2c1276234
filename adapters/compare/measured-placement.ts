import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PrerequisiteError, SandboxError } from '../../core/errors.ts';
import { CAPACITY } from '../../core/limits.ts';
import type { EngineName, PlacementName } from '../../core/run/types.ts';
import { KernelSession } from './kernel-session.ts';
import type { RoundReply } from './protocol.ts';
import type { KillRecord, PlacementRecord } from './record.ts';
import type { TurnSample } from './turn.ts';

/** A turn that takes longer has failed. */
const TURN_LIMIT_MS = 120_000;
/** After a kill the lease of a dead kernel may have to run out first. */
const RESUME_LIMIT_MS = CAPACITY.leaseMs * 2 + TURN_LIMIT_MS;

export interface PlacementSetup {
  readonly placement: PlacementName;
  readonly engine: EngineName;
  /** Empty, short, ours alone: socket paths are bounded. */
  readonly directory: string;
  readonly configFile: string | undefined;
  readonly scenario: string;
  readonly users: number;
  /** Host path of the bundle to clone into each workspace as `repo`; undefined when the workload needs none. */
  readonly bundle: string | undefined;
  readonly body: string;
  readonly signal: AbortSignal;
}

/**
 * One placement under measurement: a kernel in a process and a state directory of its own. One kernel serving all placements would be
 * cheaper, but its idle memory could not be told apart: the host loop works in the kernel's heap, and each placement would be charged for
 * what the others left there.
 */
export class MeasuredPlacement implements AsyncDisposable {
  readonly #setup: PlacementSetup;
  readonly #rounds: RoundReply[] = [];
  #session: KernelSession;
  #first: TurnSample;

  private constructor(setup: PlacementSetup, session: KernelSession, first: TurnSample) {
    this.#setup = setup;
    this.#session = session;
    this.#first = first;
  }

  /** Prepares the workspaces, starts the kernel, and runs the untimed first turn of each user. */
  static async open(setup: PlacementSetup): Promise<MeasuredPlacement> {
    await mkdir(join(setup.directory, 's'), { mode: 0o700 });
    if (setup.bundle !== undefined) await cloneIntoWorkspaces(setup, setup.bundle);
    const session = await startKernel(setup, setup.scenario);
    try {
      await session.ask<'users'>({ op: 'users', count: setup.users });
      const { samples } = await session.ask<'round'>({ op: 'round', users: setup.users, body: setup.body, limitMs: TURN_LIMIT_MS });
      const [first] = samples;
      if (first === undefined) throw new RangeError('a placement is measured with at least one user');
      refuseOtherSeat(setup, first);
      return new MeasuredPlacement(setup, session, first);
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get name(): string {
    return `${this.#setup.placement}/${this.#setup.engine}`;
  }

  get first(): TurnSample {
    return this.#first;
  }

  /** One timed turn of each user. */
  async round(): Promise<RoundReply> {
    const { users, body } = this.#setup;
    const reply = await this.#session.ask<'round'>({ op: 'round', users, body, limitMs: TURN_LIMIT_MS });
    this.#rounds.push(reply);
    return reply;
  }

  /** The untimed rest: a watched turn, and (when asked) a killed one. */
  async finish(options: { readonly kill: boolean }): Promise<PlacementRecord> {
    const { placement, engine, body } = this.#setup;
    const watched = await this.#session.ask<'watched'>({ op: 'watched', body, limitMs: TURN_LIMIT_MS });
    const kill: KillRecord = options.kill ? await this.#killTurn() : { kind: 'none', why: 'left out by --quick', sample: undefined };
    const diskBytes = await kernelDisk(join(this.#setup.directory, 's'));
    return { placement, engine, first: this.#first, rounds: this.#rounds, watched, kill, diskBytes };
  }

  async #killTurn(): Promise<KillRecord> {
    const inKernel = this.#setup.placement === 'host-loop-shell';
    const begun = await this.#session.ask<'begin'>({ op: 'begin', body: this.#setup.body, kill: !inKernel, limitMs: TURN_LIMIT_MS });
    let killedAtMs = begun.atMs;
    if (inKernel) {
      // The loop's process is the kernel itself: it is what a crash takes away.
      killedAtMs = Date.now();
      await this.#session.kill();
      this.#session = await startKernel(this.#setup, this.#setup.scenario);
    }
    const { run, cursor } = begun;
    const { sample, atMs } = await this.#session.ask<'resume'>({ op: 'resume', run, cursor, limitMs: RESUME_LIMIT_MS });
    if (sample.ended !== 'completed') {
      return {
        kind: 'none',
        why: `the killed run ended as ${sample.ended}${sample.detail === undefined ? '' : `: ${sample.detail}`}`,
        sample,
      };
    }
    if (atMs === undefined || sample.attempts < 2) return { kind: 'none', why: 'the run ended before the kill could reach it', sample };
    return { kind: 'resumed', ms: atMs - killedAtMs, sample };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A figure must not bear the name of a placement or an engine that did not serve the turn. */
function refuseOtherSeat({ engine, placement }: PlacementSetup, { seat, ended, detail }: TurnSample): void {
  if (seat.engine === engine && seat.placement === placement) return;
  const served =
    seat.engine === undefined
      ? `no seat was found (${ended}${detail === undefined ? '' : `: ${detail}`})`
      : `${seat.placement}/${seat.engine} served it`;
  throw new PrerequisiteError('engine_unavailable', `a turn was asked for under ${placement}/${engine}, but ${served}`, {
    hint: 'outwork doctor',
  });
}

function startKernel(setup: PlacementSetup, scenario: string): Promise<KernelSession> {
  const { placement, engine, configFile, directory, signal } = setup;
  return KernelSession.start({ stateDir: join(directory, 's'), configFile, engine, placement, scenario }, signal);
}

/**
 * Brings the bundle in through the file helper and clones it by a turn of its own, decided by policy like any other. No host path below a
 * workspace is opened. A kernel of its own does it, so that its heap does not count.
 */
async function cloneIntoWorkspaces(setup: PlacementSetup, bundle: string): Promise<void> {
  const scenario = join(setup.directory, 'clone.json');
  await writeFile(scenario, JSON.stringify(CLONE_SCENARIO));
  await using session = await startKernel(setup, scenario);
  await session.ask<'users'>({ op: 'users', count: setup.users });
  await session.ask<'import'>({ op: 'import', users: setup.users, file: bundle, path: 'repo.bundle' });
  const { samples } = await session.ask<'round'>({
    op: 'round',
    users: setup.users,
    body: 'Clone the repository.',
    limitMs: TURN_LIMIT_MS,
  });
  for (const sample of samples) {
    const fault = sample.ended === 'completed' ? sample.commandFaults[0] : `${sample.ended} ${sample.detail ?? ''}`;
    if (fault !== undefined) throw new SandboxError('start_failed', `the repository could not be cloned into a workspace: ${fault}`);
  }
}

const CLONE_SCENARIO = {
  name: 'clone',
  description: 'Clones repo.bundle into repo.',
  steps: [
    { content: 'Cloning.', toolCalls: [{ name: 'shell', args: { argv: ['git', 'clone', '--quiet', 'repo.bundle', 'repo'] } }] },
    { content: 'Cloned.', toolCalls: [] },
  ],
};

/** What lies directly in the state directory: the database and its like, never a workspace or a HOME. */
async function kernelDisk(stateDir: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(stateDir, { withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(stateDir, entry.name))).blocks * 512;
  }
  return bytes;
}
