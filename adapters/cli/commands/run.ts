import type { CompiledConfig } from '../../../core/config.ts';
import { UsageError } from '../../../core/errors.ts';
import type { KernelOperations, PostRequest } from '../../../core/kernel.ts';
import { SAFETY } from '../../../core/limits.ts';
import type { PlacementName, Run } from '../../../core/run/types.ts';
import { isUnreachable } from '../../api/operator-client.ts';
import { type CommandContext, configOf, DEFAULT_TENANT } from '../context.ts';
import { causeOf, eventLine, type FailureCause, gateLine } from '../describe.ts';
import { EXIT, exitCodeOfRun } from '../exit-code.ts';
import { followRun } from '../follow-run.ts';
import { type KernelSession, openSession } from '../with-kernel.ts';

export interface RunOptions {
  readonly user: string;
  readonly tenant?: string;
  readonly thread?: string;
  readonly placement?: PlacementName;
  readonly harness?: string;
  readonly scenario?: string;
  readonly wait?: boolean;
}

/**
 * Posts a message and follows its run: progress on standard error, the reply on standard output. Interrupted once it cancels the run and
 * waits for its end; twice it leaves.
 */
export async function runCommand(context: CommandContext, text: string, options: RunOptions): Promise<number> {
  const body = text === '-' ? await context.io.readStdin(SAFETY.messageBytes) : text;
  const config = configOf(context, options.scenario === undefined ? {} : { scenario: options.scenario });
  const follower = new Follower(context, config, options);
  try {
    return await follower.postAndFollow(body);
  } finally {
    await follower.close();
  }
}

class Follower {
  readonly #context: CommandContext;
  readonly #config: CompiledConfig;
  readonly #options: RunOptions;
  #session: KernelSession | undefined;
  #run: string | undefined;
  #interrupted = false;
  #cause: FailureCause | undefined;

  constructor(context: CommandContext, config: CompiledConfig, options: RunOptions) {
    this.#context = context;
    this.#config = config;
    this.#options = options;
  }

  async postAndFollow(body: string): Promise<number> {
    const { out, io } = this.#context;
    const stopListening = io.onInterrupt((count) => this.#interrupt(count));
    try {
      const session = await this.#open();
      if (!session.own && this.#options.scenario !== undefined) {
        throw new UsageError('conflict', '--scenario: a kernel is running, and it has its own', { hint: 'leave --scenario out' });
      }
      if (this.#interrupted) return EXIT.interrupted;
      const posted = await this.#post(session, body);
      this.#run = posted.run.id;
      out.note({ text: `${posted.run.id} on ${posted.thread.id}`, style: 'dim' });
      const run = await this.#follow(posted.run.id);
      return await this.#report(run);
    } finally {
      stopListening();
    }
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }

  async #open(): Promise<KernelSession> {
    this.#session = await openSession(this.#config, { execute: true, createKernel: this.#context.io.createKernel });
    return this.#session;
  }

  #post({ operations }: KernelSession, body: string) {
    const { user, tenant = DEFAULT_TENANT, thread, placement, harness } = this.#options;
    const request: PostRequest = {
      ...{ tenant, user, body },
      ...(thread === undefined ? {} : { thread }),
      ...(placement === undefined ? {} : { placement }),
      ...(harness === undefined ? {} : { harness }),
    };
    return operations.post(request).catch(async (error: unknown) => {
      const known = await operations.listUsers(tenant);
      if (known.some(({ name }) => name === user)) throw error;
      const flags = tenant === DEFAULT_TENANT ? '' : ` --tenant ${tenant}`;
      throw new UsageError('not_found', `no user ${user} in tenant ${tenant}`, { cause: error, hint: `outwork user add ${user}${flags}` });
    });
  }

  async #follow(run: string): Promise<Run> {
    const { out } = this.#context;
    let from: number | undefined;
    return this.#ask(async (operations) => {
      // Pressed while the message was on its way, or when the kernel that was asked to cancel had just gone.
      if (this.#interrupted) await operations.cancelRun(run);
      from ??= await positionBefore(operations, run);
      return followRun(operations, run, {
        throughGates: this.#options.wait ?? false,
        from,
        onEvent: (event) => {
          this.#cause = causeOf(event) ?? this.#cause;
          out.note(...eventLine(event, { withRun: false, columns: out.noteColumns }));
        },
        onPosition: (cursor) => {
          from = cursor;
        },
      });
    });
  }

  /** Asks the kernel; when the one of another process has gone, this process takes over and asks again. For questions that may be repeated. */
  async #ask<T>(question: (operations: KernelOperations) => Promise<T>): Promise<T> {
    for (;;) {
      const session = this.#session ?? (await this.#open());
      try {
        return await question(session.operations);
      } catch (error) {
        if (session.own || !isUnreachable(error)) throw error;
        this.#context.out.note('the kernel ended; going on in this process');
        await session.close();
        this.#session = undefined;
      }
    }
  }

  #interrupt(count: number): void {
    const { out, io } = this.#context;
    if (count > 1) {
      io.exit(EXIT.interrupted);
      return;
    }
    this.#interrupted = true;
    out.note('cancelling the run; again to leave at once');
    if (this.#run === undefined) return;
    this.#session?.operations.cancelRun(this.#run).catch((error: unknown) => {
      // A kernel that has gone is asked again by whoever follows the run: the next kernel.
      if (isUnreachable(error)) return;
      // What cannot be written now (a full disk) is for the next kernel to find: waiting for its end here could be for ever.
      out.note(`cannot cancel: ${error instanceof Error ? error.message : String(error)}`);
      io.exit(EXIT.interrupted);
    });
  }

  async #report(run: Run): Promise<number> {
    const { out } = this.#context;
    const reply = await this.#reply(run);
    if (out.json) out.document({ run, thread: run.thread, reply: reply ?? null, gate: run.gate ?? null, cause: this.#cause ?? null });
    else if (reply !== undefined) out.line(reply);
    if (run.state === 'parked') out.note(gateLine(run));
    else if (run.state !== 'completed') this.#tellFailure(run);
    return this.#interrupted && run.state !== 'completed' ? EXIT.interrupted : exitCodeOfRun(run);
  }

  #tellFailure(run: Run): void {
    const { out } = this.#context;
    const cause = this.#cause;
    out.note({ text: run.state, style: 'red' }, run.failure === undefined ? '' : `: ${run.failure}`, cause ? `: ${cause.message}` : '');
    if (cause?.hint !== undefined) out.note({ text: 'hint', style: 'bold' }, `: ${cause.hint}`);
  }

  async #reply(run: Run): Promise<string | undefined> {
    if (run.state !== 'completed') return undefined;
    const { messages } = await this.#ask((operations) => operations.showThread(run.tenant, run.thread));
    const own = messages.filter((message) => message.run === run.id && message.author === 'agent');
    return own.length === 0 ? undefined : own.map(({ body }) => body).join('\n');
  }
}

async function positionBefore(operations: KernelOperations, run: string): Promise<number> {
  const [first] = await operations.events(0, { run }, 1);
  return first === undefined ? 0 : first.cursor - 1;
}
