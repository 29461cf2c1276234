import { chmod, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OutworkError, SandboxError } from '../../../core/errors.ts';
import { CAPACITY, SAFETY } from '../../../core/limits.ts';
import type { Clock } from '../../../core/seams/clock.ts';
import type { SandboxEngine, SandboxHandle, SandboxSpec } from '../../../core/seams/sandbox-engine.ts';
import { readSubIds, type Slice, type SubIds, sliceOf } from '../slices.ts';
import { type Image, stageImage } from './image.ts';
import { type Launched, launch } from './launch.ts';
import { giveTo } from './ownership.ts';
import { planSandbox, type SandboxPlan } from './plan.ts';
import { bootId, isAlive, killProcess, type ProcessRef, processTree, uniqueMemoryBytes } from './processes.ts';
import { openRecords } from './records.ts';

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
  /** How long a start may take. Default 20 s. */
  readonly startMs?: number;
}

const INIT_SCRIPT = fileURLToPath(new URL('../../../harnesses/guest/init.sh', import.meta.url));
const POLL_MS = 5;

/**
 * Sandboxes from Linux namespaces, without a daemon: unshare(1), newuidmap(1) and bubblewrap. Works for root and for an ordinary user;
 * both need a range of subordinate ids. Sandboxes end with the kernel process.
 */
export function createBubblewrapEngine(options: BubblewrapOptions): SandboxEngine & { plan(spec: SandboxSpec): Promise<SandboxPlan> } {
  const { clock } = options;
  const stateDir = resolve(options.stateDir);
  const socketsDir = join(stateDir, 's');
  const records = openRecords(join(stateDir, 'sandboxes'));
  const live = new Set<string>();
  let subIds: Promise<SubIds> | undefined;
  let image: Promise<Image> | undefined;

  const slice = async (index: number): Promise<Slice> => {
    subIds ??= readSubIds();
    // A missing range can be mended while the kernel runs; only a found one is kept.
    subIds.catch(() => {
      subIds = undefined;
    });
    return sliceOf(await subIds, index);
  };

  const stage = (): Promise<Image> => {
    const { guestBundle, nodeBinary, initScript = INIT_SCRIPT } = options;
    image ??= stageImage({ imagesDir: join(stateDir, 'image'), guestBundle, initScript, nodeBinary });
    image.catch(() => {
      image = undefined;
    });
    return image;
  };

  const gone = async (process: ProcessRef): Promise<void> => {
    while (await isAlive(process)) await new Promise<void>((wake) => clock.after(POLL_MS, wake));
  };

  const forget = async (generation: string, socketDir: string): Promise<void> => {
    await rm(socketDir, { recursive: true, force: true });
    await records.remove(generation);
    live.delete(generation);
  };

  /**
   * Makes a root once and gives it to the tool uid; from then on the kernel opens nothing there, and its owner may set its mode. Nobody
   * but the kernel writes the parent, which the slice's ids may enter and not list.
   */
  const prepareRoot = async (path: string, owner: Slice): Promise<void> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await chmod(dirname(path), 0o711);
    await mkdir(path, { recursive: true, mode: 0o700 });
    const found = await lstat(path);
    if (!found.isDirectory()) throw new SandboxError('start_failed', `${path} is not a directory`);
    if (found.uid !== owner.toolUid) await giveTo(path, { uid: owner.toolUid, gid: owner.toolGid, mode: 0o755 });
  };

  const plan = async (spec: SandboxSpec): Promise<SandboxPlan> => {
    const owner = await slice(spec.slice);
    await prepareRoot(spec.workspaceDir, owner);
    await prepareRoot(spec.homeDir, owner);
    return planSandbox(spec, await stage(), owner, options.nodeBinary);
  };

  return {
    name: 'bubblewrap',
    wall: 'namespaces',
    plan,

    async prepareSocketDir({ socketDir, slice: index }) {
      if (dirname(resolve(socketDir)) !== socketsDir) {
        throw new SandboxError('start_failed', `a socket directory must lie directly in ${socketsDir}`);
      }
      const longest = Buffer.byteLength(join(socketDir, 'membrane.sock'));
      if (longest > SAFETY.socketPathBytes) {
        throw new SandboxError('start_failed', `the socket path has ${longest} bytes; at most ${SAFETY.socketPathBytes} fit`, {
          hint: 'choose a shorter state directory',
        });
      }
      const owner = await slice(index);
      await mkdir(socketsDir, { recursive: true, mode: 0o700 });
      await mkdir(socketDir, { mode: 0o700 }).catch((cause) => {
        throw new SandboxError('start_failed', 'a generation is never used twice', { cause });
      });
      await giveTo(socketDir, { gid: owner.executorGid, mode: 0o710 });
    },

    async grantSocket(socketPath, index) {
      const owner = await slice(index);
      await giveTo(socketPath, { gid: owner.executorGid, mode: 0o660 });
    },

    async start(spec) {
      live.add(spec.generation);
      let launched: Launched;
      try {
        launched = await launch(await plan(spec), spec.token, clock, options.startMs ?? CAPACITY.sandboxStartMs);
        await records.write({
          generation: spec.generation,
          socketDir: spec.socketDir,
          bootId: await bootId(),
          monitor: launched.monitor,
          init: launched.init,
        });
      } catch (error) {
        live.delete(spec.generation);
        if (error instanceof OutworkError) throw error;
        throw new SandboxError('start_failed', 'the sandbox could not be prepared', { cause: error });
      }
      return handle(spec, launched);
    },

    async sweep() {
      const boot = await bootId();
      for (const { generation, record } of await records.list()) {
        if (live.has(generation)) continue;
        if (record !== undefined && record.bootId === boot) {
          await killProcess(record.init);
          await killProcess(record.monitor);
          await gone(record.init);
          await gone(record.monitor);
        }
        await forget(generation, join(socketsDir, generation));
      }
      for (const name of await readdir(socketsDir).catch(() => [])) {
        if (!live.has(name)) await rm(join(socketsDir, name), { recursive: true, force: true });
      }
    },
  };

  function handle(spec: SandboxSpec, launched: Launched): SandboxHandle {
    let stopped = false;
    const finish = async () => {
      const { code, signal } = await launched.exited;
      // Bubblewrap reaps the init, which the system lets die last; if something killed bubblewrap itself, the init is still dying.
      await gone(launched.init);
      await forget(spec.generation, spec.socketDir);
      const how = signal === null ? `exit ${code}` : signal;
      return { reason: stopped ? 'stopped' : `guest ended (${how}) ${launched.output().trim().slice(-500)}`.trim() };
    };
    const ended = finish();
    return {
      generation: spec.generation,
      ended,
      async stop() {
        stopped = true;
        await killProcess(launched.init);
        await ended;
      },
      async usage() {
        const inside = await processTree(launched.init.pid);
        const memory = await Promise.all([launched.monitor.pid, ...inside].map(uniqueMemoryBytes));
        return { memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0), processes: inside.length };
      },
    };
  }
}
