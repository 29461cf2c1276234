import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../../adapters/store/mikro-orm/store.ts';
import type { CallPolicyInput, Decision } from '../../../core/policy/types.ts';
import { type CommandResult, commandLine } from '../../support/command-line.ts';
import { shellInput } from './inputs.ts';

const ALLOWED: Decision = {
  effect: 'allow',
  reasons: [{ code: 'capability_allowed', message: 'It is.' }],
  obligations: [],
  digests: { rules: 'r', data: 'd' },
  durationUs: 1,
};

/** Command lines in this process, in a directory of their own, over real rows. No kernel runs. */
export class PolicyCommands implements AsyncDisposable {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async make(): Promise<PolicyCommands> {
    return new PolicyCommands(await mkdtemp(join(tmpdir(), 'outwork-guide-')));
  }

  run(...args: string[]): Promise<CommandResult> {
    return commandLine(this.dir, args);
  }

  async json(...args: string[]): Promise<{ readonly code: number; readonly document: unknown }> {
    const { code, stdout } = await this.run(...args, '--json');
    return { code, document: JSON.parse(stdout) };
  }

  get stateDir(): string {
    return join(this.dir, 'state');
  }

  /** Records decisions of a run, as a kernel would have. @returns their ids */
  async record(
    ...asked: readonly { readonly input: CallPolicyInput; readonly decision?: Partial<Decision> }[]
  ): Promise<readonly string[]> {
    const store = await openSqliteStore({ file: join(this.stateDir, 'outwork.db') });
    try {
      const nowMs = Date.now();
      if ((await store.users.get('default', 'eva')) === undefined)
        await store.users.add({ tenant: 'default', name: 'eva', roles: ['user'], nowMs });
      const { run } = await store.threads.post({ tenant: 'default', actor: 'eva', origin: 'operator', body: 'hello', nowMs });
      const ids = asked.map((_, at) => `dec_${String(nowMs + at).padStart(26, '0')}`);
      for (const [at, { input, decision }] of asked.entries()) {
        const row = { id: ids[at] ?? '', run: run.id, kind: 'call', capability: 'shell.exec', inputDigest: 'd', atMs: nowMs } as const;
        await store.decisions.add({ ...row, input, decision: { ...ALLOWED, ...decision } });
      }
      return ids;
    } finally {
      await store.close();
    }
  }

  /** The log of somebody who has run agents before: two decisions. */
  async usedBefore(): Promise<void> {
    await this.run('user', 'add', 'zoe');
    await this.record({ input: shellInput(['git', 'push', 'origin', 'main']) }, { input: shellInput(['make']) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.dir, { recursive: true, force: true });
  }
}
