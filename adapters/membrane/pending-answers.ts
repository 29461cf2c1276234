import { CallError, type OutworkError, SandboxError, type SandboxErrorCode } from '../../core/errors.ts';
import type { CommandProgress } from '../../core/ports/placement.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { ControlReply } from '../../core/wire/protocol.ts';

type Kind = 'exec' | 'file' | 'background';
type Answer<K extends Kind> = NonNullable<ControlReply[K]>;

interface Pending {
  readonly kind: Kind;
  readonly settle: (reply: ControlReply) => void;
  readonly onProgress: ((progress: CommandProgress) => void) | undefined;
  readonly fail: (error: SandboxError) => void;
}

export interface Question<K extends Kind> {
  readonly kind: K;
  readonly signal: AbortSignal;
  /** Hands the question over under its id. @throws SandboxError `guest_lost` */
  readonly send: (id: string) => void;
  /** Asks the guest to stop; called at most once. */
  readonly cancel: (id: string) => void;
  /** Sees what an `exec` has printed so far; absent for those who do not care. */
  readonly onProgress?: ((progress: CommandProgress) => void) | undefined;
  /** When the guest is asked to stop though nobody aborted. */
  readonly timeoutMs: number;
}

/** Codes a guest may answer with; any other text of its choice becomes `start_failed`. */
const GUEST_CODES: Readonly<Record<SandboxErrorCode, true>> = {
  start_failed: true,
  guest_lost: true,
  not_running: true,
  slice_exhausted: true,
  invocations_exhausted: true,
  pids: true,
  background_limit: true,
  path_outside_workspace: true,
  not_a_regular_file: true,
  file_not_found: true,
  file_too_large: true,
  file_not_permitted: true,
  disk_full: true,
  io_failed: true,
  output_limit: true,
  timeout: true,
};

/** What the kernel has asked one guest over its control stream, by id. Every question ends: answered, given up, or with the channel. */
export class PendingAnswers {
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #pending = new Map<string, Pending>();
  #asked = 0;

  constructor(options: { readonly clock: Clock; readonly graceMs: number }) {
    this.#clock = options.clock;
    this.#graceMs = options.graceMs;
  }

  /**
   * An abort or the timeout asks the guest to stop and waits for its answer for the grace time only: a command that was ended still has
   * an outcome worth recording. Without an answer the end is not known, and the error says that of the guest.
   *
   * @throws SandboxError `timeout` (aborted before it was handed over) `guest_lost`, and the code the guest answered; CallError
   * `invalid_arguments`
   */
  async ask<K extends Kind>(question: Question<K>): Promise<Answer<K>> {
    const { kind, signal, send, cancel, timeoutMs, onProgress } = question;
    if (signal.aborted) throw new SandboxError('timeout', 'cancelled before it was handed to the guest');
    this.#asked += 1;
    const id = `q${this.#asked}`;
    let cancelTimer: () => void = () => undefined;
    const { promise, resolve, reject } = Promise.withResolvers<Answer<K>>();

    const giveUp = (): void => {
      signal.removeEventListener('abort', giveUp);
      cancelTimer();
      cancelTimer = this.#clock.after(this.#graceMs, () => reject(new SandboxError('guest_lost', 'the guest did not answer in time')));
      cancel(id);
    };
    this.#pending.set(id, {
      kind,
      onProgress,
      settle: (reply) => {
        const answer = reply[kind];
        if (answer !== undefined) resolve(answer as Answer<K>);
        else reject(guestError(reply.error));
      },
      fail: reject,
    });
    try {
      signal.addEventListener('abort', giveUp);
      cancelTimer = this.#clock.after(timeoutMs, giveUp);
      send(id);
      return await promise;
    } finally {
      this.#pending.delete(id);
      signal.removeEventListener('abort', giveUp);
      cancelTimer();
    }
  }

  /** @returns false when the reply does not fit its question. A reply to nothing (answered late) is ignored. */
  answer(reply: ControlReply): boolean {
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return true;
    if (reply.progress !== undefined) {
      if (pending.kind !== 'exec') return false;
      pending.onProgress?.(reply.progress);
      return true;
    }
    if (reply.error === undefined && reply[pending.kind] === undefined) return false;
    pending.settle(reply);
    return true;
  }

  failAll(error: SandboxError): void {
    for (const pending of this.#pending.values()) pending.fail(error);
  }
}

function guestError(error: ControlReply['error']): OutworkError {
  const { code, message } = error ?? { code: 'start_failed', message: 'the guest gave no reason' };
  // What is wrong with a command is called the same wherever it runs.
  if (code === 'invalid_arguments') return new CallError(code, message);
  if (Object.hasOwn(GUEST_CODES, code)) return new SandboxError(code as SandboxErrorCode, message);
  return new SandboxError('start_failed', `${code}: ${message}`);
}
