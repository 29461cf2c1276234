import { rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxLimits } from '../../../core/config.ts';
import { CAPACITY, SANDBOX_LIMITS } from '../../../core/limits.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import type { Logger } from '../../../core/seams/logger.ts';
import type { SandboxEngine, SandboxHandle, SandboxSpec } from '../../../core/seams/sandbox-engine.ts';
import { openCgroups, type SandboxGroup } from '../cgroup/groups.ts';
import { DiskGuard } from '../disk/guard.ts';
import { measureRoots } from '../disk/measure.ts';
import { spaceOf } from '../disk/space.ts';
import { readSubIds, type Slice, sliceOf } from '../slices.ts';
import { explainStart } from './explain-start.ts';
import { sandboxHandle } from './handle.ts';
import { prepareRoot, prepareSockets } from './host-dirs.ts';
import { keepImage } from './image-keeper.ts';
import { launch } from './launch.ts';
import { giveTo } from './ownership.ts';
import { planSandbox, type SandboxPlan } from './plan.ts';
import { bootId } from './processes.ts';
import { openRecords } from './records.ts';
import { processLimits } from './rlimits.ts';
import { sweepSandboxes } from './sweep.ts';

export interface BubblewrapOptions {
  /** Absolute, 0700, owned by one kernel. Socket directories lie in its `s/`, sandbox records in `sandboxes/`, the image in `image/`. */
  readonly stateDir: string;
  /** The guest, one CommonJS file. */
  readonly guestBundle: string;
  /** The Node program the guest runs on; other users must be allowed to read and execute it. */
  readonly nodeBinary: string;
  readonly clock: Clock;
  /** PID 1; default is the repository's own. */
  readonly initScript?: string;
  /** How long a start may take, in milliseconds. Default 20,000. */
  readonly startMs?: number;
  /** Default: `SANDBOX_LIMITS`. */
  readonly limits?: SandboxLimits;
  /** Told when the image was not what it should be. */
  readonly log?: Pick<Logger, 'info' | 'warn'>;
}

export interface BubblewrapEngine extends SandboxEngine {
  /** What `start` would run; makes the workspace and HOME roots when they are missing. */
  plan(spec: SandboxSpec): Promise<SandboxPlan>;
  image: NonNullable<SandboxEngine['image']>;
  /** Looks at quota and reserve now, as a timer does every two seconds. */
  lookAtDisk(): Promise<void>;
}

/** Where the images of a state directory lie. */
export const imagesDirOf = (stateDir: string): string => join(stateDir, 'image');

const MiB = 1024 * 1024;
/** PID 1 of every sandbox. */
export const INIT_SCRIPT = fileURLToPath(new URL('../../../harnesses/guest/init.sh', import.meta.url));

/**
 * Sandboxes from Linux namespaces, without a daemon: unshare(1), newuidmap(1) and bubblewrap. Works for root and for an ordinary user;
 * both need a range of subordinate ids (`sub_ids_missing` else). Sandboxes end with the kernel process.
 */
export function createBubblewrapEngine(options: BubblewrapOptions): BubblewrapEngine {
  const { clock, nodeBinary, guestBundle, initScript = INIT_SCRIPT, limits = SANDBOX_LIMITS } = options;
  const stateDir = resolve(options.stateDir);
  const socketsDir = join(stateDir, 's');
  const records = openRecords(join(stateDir, 'sandboxes'));
  const live = new Set<string>();
  // What is missing can be mended while the kernel runs, so a failure is not kept.
  const subIds = keepSuccess(() => readSubIds());
  const images = keepImage({ imagesDir: imagesDirOf(stateDir), guestBundle, initScript, nodeBinary, log: options.log });
  const cgroups = keepSuccess(() => openCgroups(limits, clock));
  const disk = new DiskGuard({
    clock,
    quotaBytes: limits.diskMiB * MiB,
    reserveBytes: limits.diskReserveMiB * MiB,
    space: () => spaceOf(stateDir),
  });
  const slice = async (index: number): Promise<Slice> => sliceOf(await subIds(), index);

  const planFor = async (spec: SandboxSpec, mode: 'normal' | 'clean-up'): Promise<SandboxPlan> => {
    const owner = await slice(spec.slice);
    const [staged] = await Promise.all([
      images.use(spec.generation),
      prepareRoot(spec.workspaceDir, owner),
      prepareRoot(spec.homeDir, owner),
    ]);
    return planSandbox(spec, staged, owner, nodeBinary, {
      memoryMiB: limits.memoryMiB,
      process: await processLimits(limits, mode),
    });
  };

  const forget = async (spec: SandboxSpec, groups: readonly string[]): Promise<void> => {
    live.delete(spec.generation);
    await images.release(spec.generation);
    await (await cgroups()).remove(groups);
    await rm(spec.socketDir, { recursive: true, force: true });
    // Last: by its record a sweep finds what could not be removed now.
    await records.remove(spec.generation);
  };

  const startIn = async (making: Promise<SandboxGroup>, spec: SandboxSpec): Promise<SandboxHandle> => {
    const { generation, socketDir, workspaceDir, homeDir } = spec;
    const mode = await disk.admit(workspaceDir);
    const [group, plan] = await Promise.all([making, planFor(spec, mode)]);
    const launched = await launch(plan, spec.token, clock, options.startMs ?? CAPACITY.sandboxStartMs, (pid) => group.add(pid));
    let unwatch = () => {};
    const handle = sandboxHandle({
      generation,
      launched,
      group,
      clock,
      forget: async (how) => {
        unwatch();
        if (how === 'by itself') images.suspect();
        await forget(spec, group.dirs);
      },
      onLeft: (err) =>
        options.log?.warn({ sandbox: generation, err }, 'what a sandbox leaves cannot be removed: the next start of a kernel tries again'),
    });
    const owner = await slice(spec.slice);
    unwatch = disk.watch({
      root: workspaceDir,
      growing: mode === 'normal',
      measure: () => measureRoots([workspaceDir, homeDir], owner),
      stop: (reason) => handle.stopForDisk(reason),
    });
    const { monitor, init } = launched;
    try {
      await records.write({ generation, socketDir, bootId: await bootId(), monitor, init, groups: group.dirs });
    } catch (error) {
      await handle.stop();
      throw error;
    }
    return handle;
  };

  return {
    name: 'bubblewrap',
    wall: 'namespaces',
    plan: (spec) => planFor(spec, 'normal'),

    async prepareSocketDir(spec) {
      // From now on a sweep must not take it away.
      live.add(basename(spec.socketDir));
      await prepareSockets(socketsDir, spec.socketDir, await slice(spec.slice));
    },

    async grantSocket(socketPath, index) {
      await giveTo(socketPath, { gid: (await slice(index)).executorGid, mode: 0o660 });
    },

    async start(spec) {
      live.add(spec.generation);
      const groups = await cgroups();
      const making = groups.make(spec.generation);
      try {
        return await startIn(making, spec);
      } catch (error) {
        live.delete(spec.generation);
        await making.catch(() => {});
        await groups.remove(groups.dirsOf(spec.generation));
        images.suspect();
        try {
          throw await explainStart(error, { stateDir, image: () => images.use(spec.generation) });
        } finally {
          await images.release(spec.generation);
        }
      }
    },

    image: async (request) => ({ engine: 'bubblewrap', ...(await images.renew(request)) }),

    lookAtDisk: () => disk.look(),

    async sweep() {
      const groups = await cgroups();
      const removeGroups = async (generation: string, dirs: readonly string[]) => {
        // A group that cannot be removed holds a process that cannot be ended: it costs nothing and is no reason not to start.
        await groups.remove([...groups.dirsOf(generation), ...dirs]).catch(() => {});
      };
      await sweepSandboxes({ records, socketsDir, live, clock, removeGroups });
    },
  };
}

/** Calls `make` until it succeeds once; callers at the same time share one call. */
function keepSuccess<T>(make: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  return () => {
    kept ??= make().catch((error) => {
      kept = undefined;
      throw error;
    });
    return kept;
  };
}
