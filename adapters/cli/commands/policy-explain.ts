import { resolve } from 'node:path';
import { PrerequisiteError, UsageError } from '../../../core/errors.ts';
import { loadBundle } from '../../policy/bundle.ts';
import { type RuleTrace, traceRules } from '../../policy/explain.ts';
import { toRegoInput } from '../../policy/marshal.ts';
import { boundsDenial, type Question, readQuestion } from '../../policy/question.ts';
import type { RuleNote } from '../../policy/sources.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { withServing } from '../../policy/with-serving.ts';
import { type CommandContext, withOperations } from '../context.ts';
import { timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import { printHanging } from '../fields.ts';
import type { Output } from '../output.ts';
import { placeOf } from './policy.ts';

/** What is explained: a recorded decision, or the answer to a question of one's own. */
interface Subject {
  readonly title: string;
  readonly verdict: Verdict;
  /** As rules see it; undefined when only its digest was kept. */
  readonly input: Readonly<Record<string, unknown>> | undefined;
  readonly rules: string;
  /** What of a question of one's own no kernel would ask. */
  readonly strays?: readonly string[];
}

/**
 * Why a decision was made: the codes it carries, with what each rule says of itself; and, where OPA is installed and the input was kept,
 * what every other rule of its kind did with the question.
 * @throws UsageError `usage` `not_found` `invalid_argument`; PolicyError when the rules on disk do not load
 */
export async function policyExplain(
  context: CommandContext,
  decision: string | undefined,
  { input: file }: { readonly input?: string },
): Promise<number> {
  if ((decision === undefined) === (file === undefined)) throw new UsageError('usage', 'name a decision, or a file with --input');
  const place = placeOf(context);
  const question = file === undefined ? undefined : await readQuestion(resolve(context.io.cwd, file));
  const bundle = await loadBundle(place.dir, place.siteDir);
  const subject = question === undefined ? await recorded(context, decision ?? '') : await asked(question, bundle);
  const notes = new Map(bundle.manifest.rules.map((note) => [note.code, note]));
  const reasons = subject.verdict.reasons.map((reason) => ({ ...reason, note: notes.get(reason.code) ?? null }));
  const { traces, why } = subject.input === undefined ? NO_INPUT : await trace(place, subject.input);
  if (context.out.json) {
    const { effect, obligations } = subject.verdict;
    context.out.document({
      of: subject.title,
      effect,
      reasons,
      obligations,
      input: subject.input ?? null,
      rules: traces ?? null,
      note: why ?? null,
      ...(subject.strays === undefined ? {} : { strays: subject.strays }),
    });
    return EXIT.good;
  }
  print(context.out, subject, reasons, bundle.digests.rules);
  for (const stray of subject.strays ?? []) context.out.note(`No kernel asks this so: ${stray}`);
  if (traces !== undefined) printTraces(context.out, traces);
  if (why !== undefined) context.out.note(why);
  return EXIT.good;
}

const NO_INPUT = { traces: undefined, why: 'Only the digest of the question was kept (policy.logInput), so rules cannot be asked again.' };

async function recorded(context: CommandContext, id: string): Promise<Subject> {
  const row = await withOperations(context, (kernel) => kernel.showDecision(id));
  const { decision, kind, capability, atMs, run, input } = row;
  return {
    title: `${id}: ${kind} ${capability}, ${timeText(atMs)}, run ${run}`,
    verdict: decision,
    input: input === undefined ? undefined : toRegoInput(input),
    rules: decision.digests.rules,
  };
}

async function asked({ file, input, strays }: Question, bundle: Awaited<ReturnType<typeof loadBundle>>): Promise<Subject> {
  const about = { title: file, input, rules: bundle.digests.rules, strays };
  const outOfBounds = boundsDenial(input);
  if (outOfBounds !== undefined) return { ...about, verdict: outOfBounds };
  return { ...about, verdict: await withServing(bundle, (serving) => serving.ask(JSON.stringify(input))) };
}

async function trace(place: Parameters<typeof traceRules>[0], input: Readonly<Record<string, unknown>>) {
  try {
    return { traces: await traceRules(place, input), why: undefined };
  } catch (error) {
    if (!(error instanceof PrerequisiteError)) throw error;
    return { traces: undefined, why: `Rules that did not fire are told with OPA only: ${error.message} (${error.hint})` };
  }
}

function print(
  out: Output,
  subject: Subject,
  reasons: readonly { code: string; message: string; note: RuleNote | null }[],
  onDisk: string,
): void {
  const { effect, obligations } = subject.verdict;
  const style = effect === 'allow' ? 'green' : effect === 'deny' ? 'red' : 'yellow';
  out.line(subject.title);
  out.line(
    { text: effect, style },
    obligations.length === 0 ? '' : `, obliged to ${obligations.map((one) => JSON.stringify(one)).join(' ')}`,
  );
  for (const { code, message, note } of reasons) {
    printHanging(out, '  ', `${code}: ${message}`);
    if (note !== null)
      printHanging(out, '    ', `${note.rule}, ${note.file}: ${note.title}. To change it: ${note.solution}`, { text: 'dim' });
  }
  if (subject.rules !== onDisk) out.line({ text: 'The rules on disk are others than those that decided this.', style: 'yellow' });
}

function printTraces(out: Output, traces: readonly RuleTrace[]): void {
  printHanging(out, '', 'Every rule of this kind, asked again on the rules and data on disk:', { text: 'bold' });
  for (const { rule, code, fired, stoppedAt, line } of traces) {
    const stopped = stoppedAt === undefined ? '' : `: ${stoppedAt} ${line}`;
    if (fired) printHanging(out, '  fired  ', `${code} (${rule})`, { lead: 'green' });
    else printHanging(out, '  not    ', `${code} (${rule})${stopped}`, { lead: 'dim' });
  }
}
