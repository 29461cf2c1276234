import type { CompiledConfig } from '../core/config.ts';
import { PolicyError } from '../core/errors.ts';
import type { KernelOperations } from '../core/kernel.ts';
import { createOperations } from '../core/kernel-operations.ts';
import { LiveRuns } from '../core/run/live-runs.ts';
import { type Clock, steadyClock } from '../core/seams/clock.ts';
import type { ImageStatus } from '../core/seams/sandbox-engine.ts';
import { requireOpenFiles } from './config/open-files.ts';
import { databaseFile } from './config/state-dir.ts';
import { offlineControl } from './policy/offline-control.ts';
import { offlineDecide } from './policy/offline-decide.ts';
import { openSqliteStore } from './store/mikro-orm/store.ts';
import { lockStateDir } from './store/state-lock.ts';

export interface Administration extends KernelOperations, AsyncDisposable {
  close(): Promise<void>;
}

/**
 * The operations of a state directory that no kernel owns, over its store alone: for commands that read and write rows. No policy is loaded, no
 * guest is built, nothing executes. Holds the directory's lock meanwhile, as a kernel would.
 * @throws StoreError `state_locked`; PrerequisiteError `state_directory_unusable`
 */
export async function openAdministration(config: CompiledConfig): Promise<Administration> {
  requireOpenFiles();
  const lock = await lockStateDir(config.stateDir);
  try {
    const store = await openSqliteStore({ file: databaseFile(config.stateDir) });
    const clock = steadyClock();
    const status = () => {
      throw new PolicyError('policy_not_ready', 'no kernel runs on this state directory', { hint: 'outwork serve' });
    };
    const operations = createOperations({
      config,
      ...{ store, clock, policy: { status }, live: new LiveRuns(), runsPerUser: config.runsPerUser },
      control: offlineControl(config, store, clock),
      decide: offlineDecide(config, store, clock),
      image: (request) => buildImage(config, clock, request),
      wake: () => {},
    });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= store.close().then(() => lock.release());
      return closing;
    };
    return { ...operations, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Loaded only when asked for: every other command of this kind does without engine and guest. */
async function buildImage(
  { stateDir }: CompiledConfig,
  clock: Clock,
  request: { readonly force?: boolean | undefined },
): Promise<ImageStatus> {
  const [{ createBubblewrapEngine }, { ensureGuest }] = await Promise.all([
    import('./sandbox/bubblewrap/engine.ts'),
    import('../harnesses/guest/bundle.ts'),
  ]);
  const { file } = await ensureGuest();
  const engine = createBubblewrapEngine({ stateDir, guestBundle: file, nodeBinary: process.execPath, clock });
  return engine.image(request);
}
