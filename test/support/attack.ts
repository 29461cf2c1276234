import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KernelUser } from '../../adapters/sandbox/slices.ts';
import { kernelUsers, openKernel, type TestKernel, type TestSandbox, type Weakening } from './sandbox-client.ts';

/** What an attempt may use besides its sandbox. */
export interface AttackWorld {
  readonly kernel: TestKernel;
  readonly user: KernelUser;
  /** A directory of the host that everybody may read, with a file `marker` that says `host-marker`. */
  readonly hostDir: string;
}

export interface Attempt {
  readonly through: boolean;
  /** What was seen, for a person. */
  readonly evidence: string;
}

export type AttackStep = (sandbox: TestSandbox, world: AttackWorld) => Promise<Attempt>;

/** One attack on the wall. Its control shows that the attempt would be noticed if it got through. */
export interface Attack {
  /** `T05`, as in `threat-model/T05-….md`. */
  readonly threat: string;
  readonly title: string;
  readonly actor: 'tool' | 'executor';
  readonly attempt: AttackStep;
  readonly control: {
    /** Which guard is gone. */
    readonly when: string;
    readonly weakening?: Weakening | ((world: AttackWorld) => Promise<Weakening>);
    /** Another attempt, where the guard is a property of the attacker (its uid, its gid). */
    readonly attempt?: AttackStep;
  };
}

/** Runs every attack and its control against the bubblewrap engine, as each kernel user. */
export function attackTests(attacks: readonly Attack[]): void {
  for (const user of kernelUsers()) {
    describe(`bubblewrap as ${user.name}`, () => {
      let world: AttackWorld;
      beforeAll(async () => {
        const hostDir = `/var/tmp/outwork-host-${process.pid}-${user.uid}`;
        mkdirSync(hostDir, { mode: 0o755 });
        writeFileSync(`${hostDir}/marker`, 'host-marker\n', { mode: 0o644 });
        world = { kernel: await openKernel(user), user, hostDir };
      });
      afterAll(async () => {
        await world?.kernel.close();
        if (world !== undefined) rmSync(world.hostDir, { recursive: true, force: true });
      });

      for (const { threat, title, actor, attempt, control } of attacks) {
        it(`${threat} ${actor}: ${title}`, async () => {
          const sandbox = await world.kernel.start();
          const result = await attempt(sandbox, world);
          await sandbox.stop();
          expect(result, result.evidence).toMatchObject({ through: false });
        });

        it(`${threat} control: it succeeds when ${control.when}`, async () => {
          const weakening = typeof control.weakening === 'function' ? await control.weakening(world) : control.weakening;
          const sandbox = await world.kernel.start(weakening === undefined ? {} : { weakening });
          const result = await (control.attempt ?? attempt)(sandbox, world);
          await sandbox.stop();
          expect(result, result.evidence).toMatchObject({ through: true });
        });
      }
    });
  }
}

/** An attempt that is through when the tool's output says so. */
export async function toolSays(sandbox: TestSandbox, argv: readonly string[], sign: RegExp, options = {}): Promise<Attempt> {
  const { stdout, stderr } = await sandbox.tool(argv, options);
  return { through: sign.test(stdout), evidence: `${stdout}${stderr}`.slice(0, 2000) };
}
