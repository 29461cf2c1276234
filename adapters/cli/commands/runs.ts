import type { RunState } from '../../../core/run/types.ts';
import { type CommandContext, withOperations } from '../context.ts';
import { gateLine, reasonOf, stateStyle, timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import { printRunView } from '../run-view.ts';
import { printTable } from '../table.ts';

export interface RunsListOptions {
  readonly tenant?: string;
  readonly thread?: string;
  readonly in?: readonly RunState[];
  readonly limit: number;
}

/** Runs, newest first. The placement of one that has had no seat yet is in brackets: it is what config chooses now. */
export async function runsList(context: CommandContext, { tenant, thread, in: states, limit }: RunsListOptions): Promise<number> {
  const { out } = context;
  const filter = { ...(tenant === undefined ? {} : { tenant }), ...(thread === undefined ? {} : { thread }), limit };
  const runs = await withOperations(context, (kernel) => kernel.listRuns(states === undefined ? filter : { ...filter, states }));
  if (out.json) {
    out.document(runs);
    return EXIT.good;
  }
  const columns = [
    { title: 'RUN', value: (run: (typeof runs)[0]) => run.id },
    { title: 'STATE', value: (run: (typeof runs)[0]) => run.state, style: (run: (typeof runs)[0]) => stateStyle(run.state) },
    { title: 'USER', value: (run: (typeof runs)[0]) => `${run.tenant}/${run.actor}` },
    { title: 'THREAD', value: (run: (typeof runs)[0]) => run.thread },
    { title: 'PLACEMENT', value: ({ seat }: (typeof runs)[0]) => (seat.taken ? seat.placement : `(${seat.placement})`) },
    { title: 'CREATED', value: (run: (typeof runs)[0]) => timeText(run.createdAtMs) },
    { title: 'WHY', value: (run: (typeof runs)[0]) => reasonOf(run) },
  ];
  printTable(out, columns, runs, 'no runs');
  return EXIT.good;
}

/** One run, and why it does not move; with `--json` all that is known of it. */
export async function runsShow(context: CommandContext, id: string): Promise<number> {
  const view = await withOperations(context, (kernel) => kernel.showRun(id));
  if (context.out.json) context.out.document(view);
  else printRunView(context.out, view, context.io.now());
  return EXIT.good;
}

/** Cancels a run; one that has ended stays as it is. */
export async function runsCancel(context: CommandContext, id: string): Promise<number> {
  const run = await withOperations(context, (kernel) => kernel.cancelRun(id));
  if (context.out.json) context.out.document(run);
  else context.out.line(`${run.id} ${run.state}`);
  return EXIT.good;
}

export interface ResolveOptions {
  readonly as: 'done' | 'not-done' | 'abort';
}

/** A person's word on the unknown call of a parked run. */
export async function runsResolve(context: CommandContext, id: string, { as }: ResolveOptions): Promise<number> {
  const run = await withOperations(context, (kernel) => kernel.resolveRun(id, as));
  if (context.out.json) context.out.document(run);
  else context.out.line(`${run.id} ${run.state}`);
  // Another call of it may be unknown too.
  if (run.state !== 'parked') return EXIT.good;
  context.out.note(gateLine(run));
  return EXIT.parked;
}
