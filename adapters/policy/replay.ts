import { SAFETY } from '../../core/limits.ts';
import type { Flip } from '../../core/policy/control.ts';
import type { DecisionRow } from '../../core/ports/store.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { loadBundle } from './bundle.ts';
import { flipOf, recordedQuestions } from './gates.ts';
import { ServingSnapshot } from './serving-snapshot.ts';

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
  const { policyDeadlineMs: deadlineMs, policyMemoryBytes: memoryBytes } = SAFETY;
  const bundle = await loadBundle(dir, siteDir);
  const serving = await ServingSnapshot.start(bundle, { clock: systemClock, retryMs: 1000, deadlineMs, memoryBytes });
  try {
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
  } finally {
    await serving.close();
  }
}
