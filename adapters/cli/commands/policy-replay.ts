import { resolve } from 'node:path';
import type { Flip } from '../../../core/policy/control.ts';
import { type CommandContext, configOf, withOperations } from '../context.ts';
import { clip } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { printTable } from '../table.ts';

/** The newest decisions are replayed, at most so many. */
export const MOST_REPLAYED = 10_000;

export interface ReplayOptions {
  /** Milliseconds. */
  readonly since: number;
  readonly bundle?: string;
  readonly allowWidening?: boolean;
}

/** What the rules on disk would have decided, against what was decided. @throws PolicyError when they do not load */
export async function policyReplay(context: CommandContext, { since, bundle, allowWidening }: ReplayOptions): Promise<number> {
  const { replayDecisions } = await import('../../policy/replay.ts');
  const { dir, siteDir } = configOf(context).policy;
  const rows = await withOperations(context, (kernel) => kernel.listDecisions(Math.max(0, context.io.now() - since), MOST_REPLAYED));
  const replay = await replayDecisions(
    bundle === undefined ? dir : resolve(context.io.cwd, bundle),
    bundle === undefined ? siteDir : undefined,
    rows,
  );
  const widens = replay.looser.length > 0;
  if (context.out.json) context.out.document({ ...replay, widens });
  else {
    const { asked, withoutInput, looser, stricter } = replay;
    context.out.line(`${asked} decisions asked again${withoutInput === 0 ? '' : `; of ${withoutInput} only the digest is kept`}`);
    printFlips(context.out, 'allows more', looser);
    printFlips(context.out, 'allows less', stricter);
  }
  return widens && allowWidening !== true ? EXIT.bad : EXIT.good;
}

/** The effect before and after; where it is the same, the obligations differ. */
const changeOf = ({ before, after, looser }: Flip): string =>
  before === after ? `${after}, ${looser ? 'less' : 'more'} bound` : `${before} → ${after}`;

/** The flips of one direction; a line that says so when there are none. */
export function printFlips(out: Output, title: string, flips: readonly Flip[]): void {
  out.line({ text: `${title}: ${flips.length}`, style: 'bold' });
  if (flips.length === 0) return;
  const columns = [
    { title: 'WHAT', value: changeOf },
    { title: 'BY', value: (flip: Flip) => flip.codes.join(', ') },
    { title: 'OF', value: (flip: Flip) => clip(flip.of, 60) },
    { title: 'ASKED', value: (flip: Flip) => clip(String(flip.about), 80) },
  ];
  printTable(out, columns, flips, '');
}
