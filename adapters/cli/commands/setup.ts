import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import type { Style } from '../output.ts';
import { machine, type SetupHost } from '../setup/host.ts';
import { type SetupStep, type StepResult, takeStep } from '../setup/step.ts';

export interface SetupOptions {
  readonly full?: boolean;
  readonly dryRun?: boolean;
}

const STYLE: Readonly<Record<StepResult['state'], Style>> = {
  present: 'dim',
  done: 'green',
  planned: 'yellow',
  manual: 'red',
  failed: 'red',
};

/**
 * Brings this machine to where `doctor` has no complaint, says what it did, and can be repeated. What it may not do itself it names as a
 * command, with exit code 3.
 */
export async function setup(context: CommandContext, options: SetupOptions): Promise<number> {
  const steps = await stepsFor(configOf(context).stateDir, options.full ?? false);
  return runSetup(context, steps, machine(context.io.env), options.dryRun ?? false);
}

/** As `setup`, over given steps and a given machine. */
export async function runSetup({ out }: CommandContext, steps: readonly SetupStep[], host: SetupHost, dryRun: boolean): Promise<number> {
  const results: StepResult[] = [];
  for (const step of steps) {
    const result = await takeStep(step, host, { dryRun, log: (line) => out.note({ text: line, style: 'dim' }) });
    results.push(result);
    if (out.json) continue;
    out.line({ text: result.state.padEnd(8), style: STYLE[result.state] }, `${result.id.padEnd(16)} ${result.detail}`);
    if (result.state === 'manual' || result.state === 'failed')
      if (result.command !== undefined) out.line(`         run: ${result.command}`);
  }
  const ok = results.every(({ state }) => state !== 'manual' && state !== 'failed');
  if (out.json) out.document({ ok, dryRun, steps: results });
  return ok ? EXIT.good : EXIT.missing;
}

async function stepsFor(stateDir: string, full: boolean): Promise<readonly SetupStep[]> {
  const { BASE_PACKAGES, FULL_PACKAGES, goStep, guestStep, opaStep, packagesStep, stateDirStep, subIdsStep } = await import(
    '../setup/steps.ts'
  );
  const base = [packagesStep('packages', BASE_PACKAGES), subIdsStep(), guestStep, stateDirStep(stateDir)];
  return full ? [...base, packagesStep('test-packages', FULL_PACKAGES), goStep, opaStep] : base;
}
