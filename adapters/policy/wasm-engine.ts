import { performance } from 'node:perf_hooks';
import { type OutworkError, PolicyError } from '../../core/errors.ts';
import type { NewEvent } from '../../core/events.ts';
import { SAFETY } from '../../core/limits.ts';
import type { Flip, KnownSnapshot, PolicyChange, PolicyControl } from '../../core/policy/control.ts';
import type { Decision, PolicyEngine, PolicyInput, PolicyStatus } from '../../core/policy/types.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { inputFault } from './bounds.ts';
import { type Bundle, bundleSignature, loadBundle } from './bundle.ts';
import { FileCache } from './file-cache.ts';
import { findFlips, fixedQuestions, recordedQuestions, refuseWidening, requireFloor, requireVersion, widenedEvent } from './gates.ts';
import { toRegoInput } from './marshal.ts';
import { verifyRelease } from './release.ts';
import { ServingSnapshot } from './serving-snapshot.ts';
import { type Accepted, PolicySnapshots } from './snapshots.ts';
import { denial, type Verdict } from './verdict.ts';

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
  /** Receives `policy.loaded`, `policy.widened`, `policy.rolled_back` and `policy.reload_failed`. */
  readonly onEvent: (event: NewEvent) => void;
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
  await engine.start();
  return engine;
}

/** A change that a person asked for, by name; a poll asks for none. */
interface LoadRequest {
  readonly byHand?: boolean;
  readonly widenBy?: string | undefined;
}

class WasmPolicyEngine implements ReloadingPolicyEngine {
  readonly #options: PolicyEngineOptions;
  readonly #snapshots: PolicySnapshots | undefined;
  readonly #cache = new FileCache();
  #serving: ServingSnapshot | undefined;
  #accepted: Accepted | undefined;
  #loadedAtMs = 0;
  #fault: string | undefined;
  /** What the files looked like at the last load, good or bad. */
  #signature = '';
  /** What they looked like at the last poll, when that was new. */
  #candidate = '';
  #work: Promise<unknown> = Promise.resolve();
  #stopPolling: () => void = () => undefined;
  #closed = false;

  constructor(options: PolicyEngineOptions) {
    this.#options = options;
    this.#snapshots = options.stateDir === undefined ? undefined : new PolicySnapshots(options.stateDir);
  }

  async start(): Promise<void> {
    this.#signature = await this.#look().catch(() => '');
    this.#accepted = await this.#snapshots?.accepted();
    if (this.#accepted === undefined || this.#snapshots === undefined) await this.#load({});
    else {
      const bundle = await this.#snapshots.load(this.#accepted.snapshot);
      this.#serve(await this.#startServing(bundle));
      if (this.#options.leaveDisk !== true) await this.#reload();
    }
    this.#poll();
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
      this.#fault = undefined;
      return change;
    });
  }

  rollBack({ digest, by }: { readonly digest: string; readonly by: string }): Promise<PolicyChange> {
    return this.#inOrder(async () => {
      const snapshots = this.#snapshots;
      const from = this.#serving?.bundle;
      if (snapshots === undefined || from === undefined) throw new PolicyError('policy_not_ready', 'No earlier snapshots are kept here.');
      const bundle = await snapshots.load(await snapshots.find(digest));
      if (bundle.snapshot === from.snapshot) return { ...changeOf(bundle), changed: false, flips: [] };
      const serving = await this.#startServing(bundle);
      const flips = await this.#gates(serving).catch((error) => this.#giveUp(serving, error));
      const onDisk = await loadBundle(this.#options.dir, this.#options.siteDir, this.#cache).catch(() => undefined);
      await this.#adopt(serving, { held: onDisk?.snapshot ?? from.snapshot });
      this.#fault = ROLLED_BACK;
      this.#options.onEvent({ type: 'policy.rolled_back', data: { by, from: from.snapshot, to: bundle.snapshot } });
      return { ...changeOf(bundle), changed: true, flips };
    });
  }

  async snapshots(): Promise<readonly KnownSnapshot[]> {
    return (await this.#snapshots?.list()) ?? [];
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopPolling();
    await this.#work;
    const serving = this.#serving;
    this.#serving = undefined;
    await serving?.close();
  }

  #verdict(serving: ServingSnapshot | undefined, input: PolicyInput): Verdict {
    try {
      const fault = inputFault(input);
      if (fault !== undefined) return denial('input_out_of_bounds', `Policy was not asked: ${fault}.`);
      const text = JSON.stringify(toRegoInput(input));
      if (Buffer.byteLength(text) > SAFETY.policyInputBytes) {
        return denial('input_out_of_bounds', `Policy was not asked: the input is larger than ${SAFETY.policyInputBytes} bytes.`);
      }
      return serving?.ask(text) ?? denial('policy_not_ready', 'Policy is being loaded; ask again.');
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
      await this.#load({});
      this.#fault = undefined;
    } catch (error) {
      const { code, message } = error as OutworkError;
      this.#fault = message;
      if (code !== 'policy_rolled_back')
        this.#options.onEvent({ type: 'policy.reload_failed', data: { code: code ?? 'policy_malformed', message } });
    }
  }

  /** What is on disk through every gate, and then it runs. @throws PolicyError; what ran goes on */
  async #load(request: LoadRequest): Promise<PolicyChange> {
    const { dir, siteDir, publicKey } = this.#options;
    if (this.#serving !== undefined || request.byHand === true) this.#signature = await this.#look();
    const bundle = await loadBundle(dir, siteDir, this.#cache);
    const running = this.#serving?.bundle;
    if (bundle.snapshot === running?.snapshot) return { ...changeOf(bundle), changed: false, flips: [] };
    if (request.byHand !== true && bundle.snapshot === this.#accepted?.held) throw new PolicyError('policy_rolled_back', ROLLED_BACK);
    if (publicKey !== undefined) await verifyRelease(bundle, publicKey);
    requireVersion(bundle, this.#accepted?.highest ?? running?.digests.version ?? 0, publicKey !== undefined);
    const serving = await this.#startServing(bundle);
    try {
      if (request.byHand === true) await this.#options.test?.(serving);
      const flips = await this.#gates(serving);
      if (request.widenBy === undefined) refuseWidening(flips);
      await this.#adopt(serving, {});
      const widened = request.widenBy === undefined ? undefined : widenedEvent(request.widenBy, running, bundle, flips);
      if (widened !== undefined) this.#options.onEvent(widened);
      return { ...changeOf(bundle), changed: true, flips };
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

  /** Floor, then the replay against what runs. */
  async #gates(next: ServingSnapshot): Promise<Flip[]> {
    requireFloor(next.bundle, (text) => next.ask(text));
    const now = this.#serving;
    if (now === undefined) return [];
    const recorded = recordedQuestions((await this.#options.recent?.()) ?? []);
    const questions = [...fixedQuestions(now.bundle, next.bundle), ...recorded];
    return findFlips(
      questions,
      (text) => now.askAgain(text),
      (text) => next.askAgain(text),
      now.bundle.digests,
    );
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
    await this.#snapshots?.accept(bundle, this.#options.clock.now(), change);
    const highest = Math.max(this.#accepted?.highest ?? 0, bundle.digests.version);
    this.#accepted = { snapshot: bundle.snapshot, highest, held: change.held };
    this.#serve(serving);
  }

  #serve(serving: ServingSnapshot): void {
    const old = this.#serving;
    this.#serving = serving;
    this.#loadedAtMs = this.#options.clock.now();
    serving.succeed(old);
    this.#options.onEvent({ type: 'policy.loaded', data: { ...serving.bundle.digests } });
  }

  #look(): Promise<string> {
    return bundleSignature(this.#options.dir, this.#options.siteDir);
  }

  #poll(): void {
    if (this.#closed) return;
    this.#stopPolling = this.#options.clock.after(this.#options.pollMs, () => void this.#lookAgain().finally(() => this.#poll()));
  }

  /** Loads what has changed since the last load once two looks in a row saw the same: a file that is being written is not read. */
  async #lookAgain(): Promise<void> {
    const seen = await this.#look().catch(() => 'unreadable');
    if (seen === this.#signature) return;
    const settled = seen === this.#candidate;
    this.#candidate = seen;
    if (settled) await this.reload();
  }
}

const ROLLED_BACK = 'What is on disk was rolled back from; it stays out until it changes or is applied.';

const changeOf = ({ digests, snapshot }: Bundle) => ({ digests, snapshot });
