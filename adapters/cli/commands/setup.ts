import type { CompiledConfig } from '../../../core/config.ts';
import { UsageError } from '../../../core/errors.ts';
import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import type { Style } from '../output.ts';
import { machine, type SetupHost } from '../setup/host.ts';
import { readReceipt, receiptFile, writeReceipt } from '../setup/receipt.ts';
import { type SetupStep, type StepResult, takeStep } from '../setup/step.ts';
import { type UndoResult, undo } from '../setup/undo.ts';
import { wrapText } from '../wrap.ts';

export interface SetupOptions {
  readonly full?: boolean;
  readonly dryRun?: boolean;
  readonly undo?: boolean;
  readonly deleteState?: boolean;
}

const STYLE: Readonly<Record<StepResult['state'] | UndoResult['state'], Style>> = {
  present: 'dim',
  done: 'green',
  removed: 'green',
  kept: 'yellow',
  planned: 'yellow',
  manual: 'red',
  failed: 'red',
};

/**
 * Brings this machine to where `doctor` has no complaint, says what it did, and can be repeated. What it may not do itself it names as a
 * command, with exit code 3.
 */
export async function setup(context: CommandContext, options: SetupOptions): Promise<number> {
  if (options.undo) return undoSetup(context, machine(context.io.env), options);
  if (options.deleteState) throw new UsageError('usage', '--delete-state belongs to --undo');
  const steps = await stepsFor(configOf(context), options.full ?? false);
  return runSetup(context, steps, machine(context.io.env), options.dryRun ?? false);
}

/** As `setup`, over given steps and a given machine. */
export async function runSetup({ out }: CommandContext, steps: readonly SetupStep[], host: SetupHost, dryRun: boolean): Promise<number> {
  const results: StepResult[] = [];
  const receipt = receiptFile(host.env);
  for (const step of steps) {
    const result = await takeStep(step, host, { dryRun, log: (line) => out.note({ text: line, style: 'dim' }) });
    // Written after each step: what an interrupted set-up added can be taken back too.
    if (result.added !== undefined && result.added.length > 0)
      await writeReceipt(receipt, [...(await readReceipt(receipt)), ...result.added]);
    results.push(result);
    printStep(out, result);
  }
  const ok = results.every(isGood);
  if (out.json) out.document({ ok, dryRun, steps: results });
  return ok ? EXIT.good : EXIT.missing;
}

/**
 * Takes back, newest first, what earlier set-ups added and wrote down, and nothing else. A state directory with something in it stays unless
 * `deleteState` says otherwise, and with it the ids that its files belong to. Exit code 3 when something could not be taken back.
 */
export async function undoSetup(context: CommandContext, host: SetupHost, options: SetupOptions): Promise<number> {
  const { out } = context;
  const { dryRun = false, deleteState = false } = options;
  const file = receiptFile(host.env);
  const entries = await readReceipt(file);
  const stateDirs = [configOf(context).stateDir, ...entries.flatMap((entry) => (entry.kind === 'state-directory' ? [entry.path] : []))];
  const results: UndoResult[] = [];
  let left = [...entries];
  for (const entry of entries.toReversed()) {
    const result = await undo(entry, host, { dryRun, deleteState, stateDirs });
    results.push(result);
    printStep(out, result);
    if (result.state !== 'removed' || dryRun) continue;
    left = left.filter((one) => one !== entry);
    await writeReceipt(file, left);
  }
  if (entries.length === 0) out.note('nothing to undo: no setup on record for this user');
  const ok = results.every(isGood);
  if (out.json) out.document({ ok, dryRun, steps: results });
  return ok ? EXIT.good : EXIT.missing;
}

const isGood = ({ state }: StepResult | UndoResult): boolean => state !== 'manual' && state !== 'failed';

/** Width of state and step before what a step found. */
const INDENT = 8 + 16 + 1;

function printStep(out: CommandContext['out'], result: StepResult | UndoResult): void {
  if (out.json) return;
  const [first = '', ...more] = wrapText(result.detail, Math.max(out.columns - INDENT, 20));
  out.line({ text: result.state.padEnd(8), style: STYLE[result.state] }, `${result.id.padEnd(16)} ${first}`);
  for (const line of more) out.line(' '.repeat(INDENT) + line);
  // Never broken: it is there to be copied.
  if ('hint' in result && result.hint !== undefined) out.line(`${' '.repeat(8)}hint: ${result.hint}`);
  if (result.command !== undefined && result.state !== 'removed') out.line(`${' '.repeat(8)}run: ${result.command}`);
}

async function stepsFor({ stateDir, policy }: CompiledConfig, full: boolean): Promise<readonly SetupStep[]> {
  const { BASE_PACKAGES, FULL_PACKAGES, goStep, guestStep, opaStep, packagesStep, stateDirStep, subIdsStep } = await import(
    '../setup/steps.ts'
  );
  const base = [packagesStep('packages', BASE_PACKAGES), subIdsStep(), guestStep, stateDirStep(stateDir)];
  return full ? [...base, packagesStep('test-packages', FULL_PACKAGES), goStep(policy.opa), opaStep(policy.opa)] : base;
}
