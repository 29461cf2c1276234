import { OutworkError } from '../../../core/errors.ts';
import type { SetupHost } from './host.ts';
import type { Added } from './receipt.ts';

/** What a step found: nothing to do, or what would mend it. */
export type StepPlan =
  | { readonly kind: 'present'; readonly detail: string }
  | {
      readonly kind: 'needed';
      readonly detail: string;
      /** What a person could type to the same end. */
      readonly command: string;
      /** True when only root may. */
      readonly privileged: boolean;
      /** Does it and gives what was not there before; rejects with the reason when it fails. `prefix` makes a command run as root. */
      readonly act: (prefix: readonly string[], log: (line: string) => void) => Promise<readonly Added[]>;
    };

/** One thing that set-up looks after. Looking changes nothing, and doing it twice is doing it once. */
export interface SetupStep {
  readonly id: string;
  plan(host: SetupHost): Promise<StepPlan>;
}

export interface StepResult {
  readonly id: string;
  /** `manual`: somebody with the right has to do it; `command` says how. */
  readonly state: 'present' | 'done' | 'planned' | 'manual' | 'failed';
  readonly detail: string;
  readonly command?: string;
  /** Of a failure that has them. */
  readonly code?: string;
  readonly hint?: string;
  /** What it brought to this machine, for the receipt. */
  readonly added?: readonly Added[];
}

/** Takes one step, or with `dryRun` only says what it would be. Never rejects. */
export async function takeStep(
  step: SetupStep,
  host: SetupHost,
  options: { readonly dryRun: boolean; readonly log: (line: string) => void },
): Promise<StepResult> {
  const { id } = step;
  let command: string | undefined;
  try {
    const plan = await step.plan(host);
    if (plan.kind === 'present') return { id, state: 'present', detail: plan.detail };
    command = plan.command;
    const { detail } = plan;
    const prefix = plan.privileged ? await host.privilege() : [];
    if (prefix === undefined) return { id, state: 'manual', detail: `${detail}; this needs root`, command };
    if (options.dryRun) return { id, state: 'planned', detail, command };
    options.log(`${detail}: ${command}`);
    const added = await plan.act(prefix, options.log);
    const after = await step.plan(host);
    if (after.kind === 'present') return { id, state: 'done', detail: after.detail, added };
    return { id, state: 'failed', detail: `done, and still: ${after.detail}`, command, added };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const typed = error instanceof OutworkError ? { code: error.code, ...(error.hint === undefined ? {} : { hint: error.hint }) } : {};
    return { id, state: 'failed', detail, ...(command === undefined ? {} : { command }), ...typed };
  }
}

/** Runs a command of a step. @throws Error with the last line of what it complained */
export async function mustRun(host: SetupHost, argv: readonly string[]): Promise<void> {
  const [program, ...args] = argv;
  if (program === undefined) throw new TypeError('no command');
  const { code, stderr, stdout } = await host.run(program, args);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${(stderr.trim() || stdout.trim()).split('\n').at(-1) ?? ''}`);
}
