import type { Flip } from '../../core/policy/control.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import { loadBundle } from './bundle.ts';
import { flipOf, recordedQuestions } from './gates.ts';
import { withServing } from './with-serving.ts';

export interface Replay {
  /** Snapshot that was asked. */
  readonly snapshot: string;
  /** Decisions that were asked again. */
  readonly asked: number;
  /** Decisions of which only the digest is kept. */
  readonly withoutInput: number;
  readonly looser: readonly Flip[];
  readonly stricter: readonly Flip[];
}

/**
 * Asks recorded questions of the rules and data on disk, and compares with what was decided then.
 *
 * @throws PolicyError as `loadBundle`
 */
export async function replayDecisions(dir: string, siteDir: string | undefined, rows: readonly DecisionRow[]): Promise<Replay> {
  const bundle = await loadBundle(dir, siteDir);
  return withServing(bundle, (serving) => {
    const questions = recordedQuestions(rows);
    const flips = questions.flatMap((question) =>
      question.decided === undefined ? [] : (flipOf(question, question.decided, serving.ask(question.text)) ?? []),
    );
    return {
      snapshot: bundle.snapshot,
      asked: questions.length,
      withoutInput: rows.length - questions.length,
      looser: flips.filter(({ looser }) => looser),
      stricter: flips.filter(({ looser }) => !looser),
    };
  });
}
