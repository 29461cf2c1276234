import type { ServerResponse } from 'node:http';
import type { CommandOutcome } from '../../core/capability/types.ts';
import { MembraneError, SandboxError } from '../../core/errors.ts';
import type {
  BackgroundOperation,
  BackgroundResult,
  CommandProgress,
  FileOperation,
  FileResult,
  ToolCommand,
} from '../../core/ports/placement.ts';
import type { Clock } from '../../core/seams/clock.ts';
import { type ControlMessage, type ControlReply, type HelloReply, type HelloRequest, WIRE_VERSION } from '../../core/wire/protocol.ts';
import type { SandboxChannel } from './channel.ts';
import { type ControlStream, openControlStream } from './control-stream.ts';
import type { MembraneLimits } from './limits.ts';
import type { Listener } from './listener.ts';
import { PendingAnswers } from './pending-answers.ts';

/**
 * A sandbox as the kernel reaches it. The guest says hello, opens its control stream, and from then on takes messages; the end of that
 * stream is the end of the guest: it lost messages that nobody could count, so a second stream is refused.
 */
export class GuestChannel implements SandboxChannel {
  readonly socketPath: string;
  readonly ready: Promise<void>;
  readonly lost: Promise<void>;
  readonly #clock: Clock;
  readonly #limits: MembraneLimits;
  readonly #generation: string;
  readonly #guestDigest: () => string;
  readonly #ready = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<void>();
  readonly #answers: PendingAnswers;
  #greeted = false;
  #state: 'waiting' | 'ready' | 'lost' = 'waiting';
  #control: ControlStream | undefined;
  #listener: Listener | undefined;
  #sent = 0;
  #onClose: () => void = () => undefined;

  constructor(options: {
    readonly socketPath: string;
    readonly generation: string;
    readonly guestDigest: () => string;
    readonly clock: Clock;
    readonly limits: MembraneLimits;
  }) {
    this.socketPath = options.socketPath;
    this.#generation = options.generation;
    this.#guestDigest = options.guestDigest;
    this.#clock = options.clock;
    this.#limits = options.limits;
    this.#answers = new PendingAnswers({ clock: options.clock, graceMs: options.limits.answerGraceMs });
    this.ready = this.#ready.promise;
    this.lost = this.#lost.promise;
    // Whoever waits sees the rejection; a channel that nobody waits for must not end the process.
    this.ready.catch(() => undefined);
  }

  get counters(): SandboxChannel['counters'] {
    const { requests, bytes, connections } = this.#listener?.counters ?? { requests: 0, bytes: 0, connections: 0 };
    return { requests, bytes, connections, hostToSandbox: this.#sent };
  }

  /** Called once, when the socket listens. */
  attach(listener: Listener, onClose: () => void): void {
    this.#listener = listener;
    this.#onClose = onClose;
  }

  send(message: Extract<ControlMessage, { type: 'run' | 'cancel' | 'forget' | 'ping' }>): void {
    this.#write(message);
  }

  exec(run: string, command: ToolCommand, signal: AbortSignal, onProgress?: (progress: CommandProgress) => void): Promise<CommandOutcome> {
    return this.#answers.ask({
      kind: 'exec',
      signal,
      onProgress,
      timeoutMs: command.timeoutMs + this.#limits.answerGraceMs,
      send: (id) => this.#write({ type: 'exec', id, run, command }),
      cancel: (id) => this.#tryWrite({ type: 'exec.cancel', id }),
    });
  }

  file(operation: FileOperation, signal: AbortSignal): Promise<FileResult> {
    return this.#answers.ask({
      kind: 'file',
      signal,
      timeoutMs: this.#limits.fileTimeoutMs,
      send: (id) => this.#write({ type: 'file', id, operation }),
      cancel: () => undefined,
    });
  }

  background(operation: BackgroundOperation, signal: AbortSignal): Promise<BackgroundResult> {
    return this.#answers.ask({
      kind: 'background',
      signal,
      timeoutMs: this.#limits.fileTimeoutMs,
      send: (id) => this.#write({ type: 'background', id, operation }),
      cancel: () => undefined,
    });
  }

  async close(): Promise<void> {
    this.#onClose();
    this.#onLost();
    this.#control?.end();
    await this.#listener?.close();
  }

  /** @throws MembraneError `wire_version` */
  hello({ wire, guest }: HelloRequest): HelloReply {
    if (wire !== WIRE_VERSION) throw new MembraneError('wire_version', `this kernel speaks wire version ${WIRE_VERSION}`);
    if (guest !== this.#guestDigest()) throw new MembraneError('wire_version', 'this kernel brings another guest');
    this.#greeted = true;
    return { wire: WIRE_VERSION, sandbox: this.#generation };
  }

  /** @throws MembraneError `wire_version` (no hello yet) `conflict` (a stream is open) `closed` (it has ended) */
  admitControl(): void {
    if (!this.#greeted) throw new MembraneError('wire_version', 'say hello first');
    if (this.#state === 'lost') throw new MembraneError('closed', 'the control stream of this sandbox has ended');
    if (this.#control !== undefined) throw new MembraneError('conflict', 'the control stream of this sandbox is open');
  }

  /** Takes the response over as the control stream; `admitControl` has passed. */
  openControl(response: ServerResponse): void {
    this.#control = openControlStream({ response, clock: this.#clock, limits: this.#limits, onEnd: () => this.#onLost() });
    this.#state = 'ready';
    this.#ready.resolve();
  }

  /** @throws MembraneError `malformed` when the reply does not fit what was asked under its id */
  reply(reply: ControlReply): void {
    if (!this.#answers.answer(reply)) throw new MembraneError('malformed', 'the reply does not fit its question');
  }

  #write(message: ControlMessage): void {
    if (!this.#tryWrite(message)) throw new SandboxError('guest_lost', 'the sandbox has no control stream');
  }

  #tryWrite(message: ControlMessage): boolean {
    if (this.#state !== 'ready' || this.#control?.write(message) !== true) return false;
    if (message.type !== 'ping') this.#sent += 1;
    return true;
  }

  #onLost(): void {
    if (this.#state === 'lost') return;
    this.#state = 'lost';
    const error = new SandboxError('guest_lost', 'the control stream of the sandbox has ended');
    this.#ready.reject(error);
    this.#answers.failAll(error);
    this.#lost.resolve();
  }
}
