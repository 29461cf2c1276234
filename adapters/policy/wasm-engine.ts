import { performance } from 'node:perf_hooks';
import { OutworkError, PolicyError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import { canonicalJson } from '../../core/json.ts';
import { SAFETY } from '../../core/limits.ts';
import type { KnownSnapshot, PolicyChange, PolicyControl } from '../../core/policy/control.ts';
import type { Decision, PolicyEngine, PolicyInput, PolicyStatus } from '../../core/policy/types.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { type Bundle, loadBundle } from './bundle.ts';
import { DiskWatch } from './disk-watch.ts';
import { FileCache } from './file-cache.ts';
import {
  changeEvents,
  type Difference,
  differenceBetween,
  type LoadRequest,
  NO_DIFFERENCE,
  refuseWidening,
  requireFloor,
  requireVersion,
} from './gates.ts';
import { regoText } from './marshal.ts';
import { verifyRelease } from './release.ts';
import { ServingSnapshot } from './serving-snapshot.ts';
import { type Accepted, PolicySnapshots } from './snapshots.ts';
import { denial, notAsked, type Verdict } from './verdict.ts';

export interface PolicyEngineOptions {
  /** Bundle root: holds `outwork/`, `data/`, `schemas/`, `cases/` and `dist/`. */
  readonly dir: string;
  /** Rules and data of the installation's own, compiled in; `dist/` is there then. */
  readonly siteDir?: string | undefined;
  /** Where accepted snapshots are kept over a restart; without it each start takes what is on disk. */
  readonly stateDir?: string | undefined;
  /** Only what this Ed25519 key (SPKI PEM) has signed is loaded, each time under a higher version. */
  readonly publicKey?: string | undefined;
  readonly clock: Clock;
  /** Milliseconds between two looks at the files. */
  readonly pollMs: number;
  /** Receives `policy.loaded`, `first_loaded`, `widened`, `rolled_back`, `reload_failed` and `restored`. */
  readonly onEvent: (event: NewEvent) => void;
  /** What the first rules and data of a new state directory are compared with; without it they are taken as they are. */
  readonly shipped?: () => Promise<Bundle>;
  /** First rules and data that allow more than the shipped ones wait for a person too; default takes them, with an event. */
  readonly holdFirst?: boolean;
  /** The newest recorded decisions, which a change is replayed over before it is live. */
  readonly recent?: () => Promise<readonly DecisionRow[]>;
  /** Runs the tests of what is on disk before it is applied by hand. @throws PolicyError `policy_test_failed` */
  readonly test?: (serving: ServingSnapshot) => Promise<void>;
  /** Go on with what was accepted before and leave what is on disk to `apply`; default takes what narrows at once. */
  readonly leaveDisk?: boolean;
  /** Default and most: `SAFETY.policyDeadlineMs`. */
  readonly deadlineMs?: number;
  /** Default and most: `SAFETY.policyMemoryBytes`. */
  readonly memoryBytes?: number;
}

export interface ReloadingPolicyEngine extends PolicyEngine, PolicyControl {
  /** Looks at the files now instead of at the next poll; resolves when what is on disk runs, or its fault is in `status()`. */
  reload(): Promise<void>;
}

/**
 * The policy engine: a compiled bundle in a worker thread, asked synchronously under a deadline, with a second worker that stands by.
 * What is on disk runs once it has passed the gates: form, exact file set, signature, version, floor, and a replay that finds nothing it
 * allows which what runs does not. Else what ran goes on, also over a restart.
 *
 * @throws PolicyError when the first load fails and no snapshot was accepted before: without policy there is no kernel
 */
export async function createPolicyEngine(options: PolicyEngineOptions): Promise<ReloadingPolicyEngine> {
  const engine = new WasmPolicyEngine(options);
  await engine.start().catch((error) => engine.close().then(() => Promise.reject(error)));
  return engine;
}

class WasmPolicyEngine implements ReloadingPolicyEngine {
  readonly #options: PolicyEngineOptions;
  readonly #snapshots: PolicySnapshots | undefined;
  readonly #cache = new FileCache();
  #serving: ServingSnapshot | undefined;
  /** What serves is what the first load is compared with; nobody has accepted it. */
  #provisional = false;
  #accepted: Accepted | undefined;
  #loadedAtMs = 0;
  #fault: string | undefined;
  readonly #disk: DiskWatch;
  #work: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: PolicyEngineOptions) {
    this.#options = options;
    this.#disk = new DiskWatch({ ...options, onChange: () => this.reload() });
    this.#snapshots = options.stateDir === undefined ? undefined : new PolicySnapshots(options.stateDir);
  }

  async start(): Promise<void> {
    this.#disk.mark();
    this.#accepted = await this.#snapshots?.accepted();
    if (this.#accepted === undefined || this.#snapshots === undefined) await this.#loadFirst();
    else {
      const bundle = await this.#snapshots.load(this.#accepted.snapshot);
      this.#serve(await this.#startServing(bundle));
      if (this.#options.leaveDisk !== true) await this.#reload();
    }
    this.#disk.start();
  }

  /** @throws PolicyError `policy_widening` where the first load is held, and those of loading */
  async #loadFirst(): Promise<void> {
    const shipped = await this.#options.shipped?.();
    this.#provisional = shipped !== undefined;
    if (shipped !== undefined) this.#serving = await this.#startServing(shipped);
    if (shipped === undefined || this.#options.leaveDisk !== true) await this.#load({ first: true });
  }

  decide(input: PolicyInput): Decision {
    const begun = performance.now();
    const serving = this.#serving;
    const verdict = this.#verdict(serving, input);
    return {
      ...verdict,
      digests: serving?.bundle.digests ?? { rules: '', data: '' },
      durationUs: Math.round((performance.now() - begun) * 1000),
    };
  }

  status(): PolicyStatus {
    const bundle = this.#serving?.bundle;
    return {
      ready: this.#serving?.ready ?? false,
      digests: bundle?.digests ?? { rules: '', data: '' },
      loadedAtMs: this.#loadedAtMs,
      reloadFault: this.#fault,
      ageMs: this.#options.clock.now() - this.#loadedAtMs,
      ...(bundle === undefined ? {} : { snapshot: bundle.snapshot }),
    };
  }

  reload(): Promise<void> {
    return this.#inOrder(() => this.#reload());
  }

  apply({ widenBy }: { readonly widenBy?: string }): Promise<PolicyChange> {
    return this.#inOrder(async () => {
      const change = await this.#load({ byHand: true, widenBy });
      this.#clearFault(change);
      return change;
    });
  }

  rollBack({ digest, by }: { readonly digest: string; readonly by: string }): Promise<PolicyChange> {
    return this.#inOrder(async () => {
      const snapshots = this.#snapshots;
      const from = this.#serving?.bundle;
      if (snapshots === undefined || from === undefined) throw new PolicyError('policy_not_ready', 'No earlier snapshots are kept here.');
      const bundle = await snapshots.load(await snapshots.find(digest));
      if (bundle.snapshot === from.snapshot) return { ...changeOf(bundle), changed: false, ...NO_DIFFERENCE };
      const serving = await this.#startServing(bundle);
      const difference = await this.#gates(serving).catch((error) => this.#giveUp(serving, error));
      const onDisk = await loadBundle(this.#options.dir, this.#options.siteDir, this.#cache).catch(() => undefined);
      await this.#adopt(serving, { held: onDisk?.snapshot ?? from.snapshot });
      this.#fault = ROLLED_BACK;
      this.#options.onEvent({ type: 'policy.rolled_back', data: { by, from: from.snapshot, to: bundle.snapshot } });
      return { ...changeOf(bundle), changed: true, ...difference };
    });
  }

  async snapshots(): Promise<readonly KnownSnapshot[]> {
    return (await this.#snapshots?.list()) ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#disk.stop();
    await this.#work;
    const serving = this.#serving;
    this.#serving = undefined;
    await serving?.close();
  }

  #verdict(serving: ServingSnapshot | undefined, input: PolicyInput): Verdict {
    try {
      const asked = regoText(input);
      if ('fault' in asked) return notAsked(asked.fault);
      return serving?.ask(asked.text) ?? denial('policy_not_ready', 'Policy is being loaded; ask again.');
    } catch (error) {
      return denial('policy_malformed', `Policy could not be asked: ${(error as Error).message}`);
    }
  }

  /** One change at a time. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #reload(): Promise<void> {
    if (this.#closed) return;
    try {
      this.#clearFault(await this.#load({}));
    } catch (error) {
      const { code, message } = error as OutworkError;
      // A disk without room, say: once there is some, what was asked for must run.
      if (!(error instanceof OutworkError)) this.#disk.tryAgain();
      const told = this.#fault === message;
      this.#fault = message;
      if (code !== 'policy_rolled_back' && !told)
        this.#options.onEvent({ type: 'policy.reload_failed', data: { code: code ?? 'policy_malformed', message } });
    }
  }

  /** What is on disk is what runs. Where it was refused before and nothing else was loaded since, that is told: the fault is over. */
  #clearFault({ changed, digests }: PolicyChange): void {
    if (this.#fault !== undefined && !changed) this.#options.onEvent({ type: 'policy.restored', data: { ...digests } });
    this.#fault = undefined;
  }

  /** What is on disk through every gate, and then it runs. @throws PolicyError; what ran goes on */
  async #load(request: LoadRequest): Promise<PolicyChange> {
    this.#disk.mark();
    const { dir, siteDir, publicKey } = this.#options;
    const bundle = await loadBundle(dir, siteDir, this.#cache);
    const running = this.#serving?.bundle;
    const same = bundle.snapshot === running?.snapshot && canonicalJson(bundle.site) === canonicalJson(running?.site);
    if (same && !this.#provisional) return { ...changeOf(bundle), changed: false, ...NO_DIFFERENCE };
    if (request.byHand !== true && bundle.snapshot === this.#accepted?.held) throw new PolicyError('policy_rolled_back', ROLLED_BACK);
    if (publicKey !== undefined) await verifyRelease(bundle, publicKey);
    requireVersion(bundle, this.#accepted?.highest ?? (this.#provisional ? 0 : (running?.digests.version ?? 0)), publicKey !== undefined);
    const serving = same && this.#serving !== undefined ? this.#serving : await this.#startServing(bundle);
    try {
      if (request.byHand === true) await this.#options.test?.(serving);
      const difference = await this.#gates(serving);
      const held = request.first !== true || this.#options.holdFirst === true;
      if (request.widenBy === undefined && held) refuseWidening(difference);
      await this.#adopt(serving, {});
      for (const event of changeEvents(request, running, bundle, difference)) this.#options.onEvent(event);
      return { ...changeOf(bundle), changed: true, ...difference };
    } catch (error) {
      return this.#giveUp(serving, error);
    }
  }

  /** A snapshot that did not pass goes; the one that runs gets back what it lent. */
  async #giveUp(serving: ServingSnapshot, error: unknown): Promise<never> {
    if (this.#serving !== serving) await serving.close();
    this.#serving?.restock();
    throw error;
  }

  /** Floor, then the difference from what runs. */
  async #gates(next: ServingSnapshot): Promise<Difference> {
    requireFloor(next.bundle, (text) => next.ask(text));
    const now = this.#serving;
    if (now === undefined || now === next) return NO_DIFFERENCE;
    return differenceBetween(now, next, (await this.#options.recent?.()) ?? []);
  }

  #startServing(bundle: Bundle): Promise<ServingSnapshot> {
    const { clock, pollMs, deadlineMs = SAFETY.policyDeadlineMs, memoryBytes = SAFETY.policyMemoryBytes } = this.#options;
    const options = {
      clock,
      retryMs: pollMs,
      deadlineMs: Math.min(deadlineMs, SAFETY.policyDeadlineMs),
      memoryBytes: Math.min(memoryBytes, SAFETY.policyMemoryBytes),
    };
    return ServingSnapshot.start(bundle, options, this.#serving).catch((error) => {
      this.#serving?.restock();
      throw error;
    });
  }

  /** Makes a snapshot the one that decides, at one moment, once it is remembered. */
  async #adopt(serving: ServingSnapshot, change: { readonly held?: string }): Promise<void> {
    const { bundle } = serving;
    const nowMs = this.#options.clock.now();
    // The shipped rules are there to go back to from the first moment on.
    if (this.#provisional && this.#serving !== undefined) await this.#snapshots?.keep(this.#serving.bundle, nowMs - 1);
    const { snapshot, digests } = bundle;
    const accepted = { snapshot, highest: Math.max(this.#accepted?.highest ?? 0, digests.version), held: change.held };
    await this.#snapshots?.accept(bundle, nowMs, accepted);
    this.#accepted = accepted;
    this.#serve(serving);
  }

  #serve(serving: ServingSnapshot): void {
    const old = this.#serving;
    this.#serving = serving;
    this.#provisional = false;
    this.#loadedAtMs = this.#options.clock.now();
    if (serving !== old) serving.succeed(old);
    this.#options.onEvent({ type: 'policy.loaded', data: { ...serving.bundle.digests } });
  }
}

const ROLLED_BACK = 'What is on disk was rolled back from; it stays out until it changes or is applied.';

const changeOf = ({ digests, snapshot }: Bundle) => ({ digests, snapshot });
