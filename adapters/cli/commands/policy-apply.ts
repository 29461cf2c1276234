import { PolicyError, UsageError } from '../../../core/errors.ts';
import type { PolicyChange } from '../../../core/policy/control.ts';
import { type CommandContext, configOf, DEFAULT_TENANT, withOperations } from '../context.ts';
import { timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import type { Output } from '../output.ts';
import { printTable } from '../table.ts';
import { printFlips } from './policy-replay.ts';

export interface ApplyOptions {
  readonly allowWidening?: boolean;
  readonly user?: string;
  readonly tenant?: string;
}

/** Loads what is on disk. @throws PolicyError `policy_widening` `policy_role_required` and those of loading; UsageError */
export async function policyApply(
  context: CommandContext,
  { allowWidening, user, tenant = DEFAULT_TENANT }: ApplyOptions,
): Promise<number> {
  if (allowWidening === true && user === undefined) {
    throw new UsageError('usage', '--allow-widening needs --user: whoever widens is named in the event', { hint: '--user NAME' });
  }
  const widen = allowWidening === true && user !== undefined ? { widen: { tenant, user } } : {};
  const change = await withOperations(context, (kernel) => kernel.applyPolicy(widen));
  return tellChange(context, change, change.changed ? 'runs now' : 'ran already');
}

/** Lets an earlier snapshot run again. @throws PolicyError `policy_role_required`; UsageError `not_found` */
export async function policyRollback(
  context: CommandContext,
  digest: string,
  { user, tenant = DEFAULT_TENANT }: { readonly user: string; readonly tenant?: string },
): Promise<number> {
  if (!/^[0-9a-f]{8,64}$/.test(digest)) throw new UsageError('usage', `${digest} is no digest`, { hint: 'outwork policy status' });
  const change = await withOperations(context, (kernel) => kernel.rollBackPolicy({ digest, by: { tenant, user } }));
  return tellChange(context, change, change.changed ? 'runs again' : 'ran already');
}

/** What runs, how old it is, why what is on disk does not, what allows more than what was shipped, and what can be rolled back to. */
export async function policyStatus(context: CommandContext): Promise<number> {
  const { out } = context;
  const { running, snapshots } = await withOperations(context, async (kernel) => ({
    running: await kernel.policyStatus().catch((error: unknown) => {
      // Without a kernel nothing runs; what the next one starts with is known all the same.
      if (error instanceof PolicyError && error.code === 'policy_not_ready') return undefined;
      throw error;
    }),
    snapshots: await kernel.policySnapshots(),
  }));
  const { compareWithShipped } = await import('../../policy/shipped.ts');
  // Before anything was accepted it is what is on disk that is compared, and that may not load.
  const shipped = await compareWithShipped(configOf(context)).catch((error: unknown) => {
    if (error instanceof PolicyError) return undefined;
    throw error;
  });
  const looser = shipped?.flips.filter((flip) => flip.looser) ?? [];
  if (out.json) {
    out.document({
      running: running ?? null,
      snapshots,
      shipped: shipped ? { snapshot: shipped.shipped, looser, unjudged: shipped.unjudged } : null,
    });
    return EXIT.good;
  }
  if (running === undefined) out.line('no kernel runs on this state directory');
  else {
    const { snapshot = '', digests, loadedAtMs, ageMs = 0, reloadFault } = running;
    out.line(
      `runs: ${snapshot.slice(0, 12)}, version ${digests.version ?? 0}, since ${timeText(loadedAtMs)} (${Math.round(ageMs / 1000)} s)`,
    );
    if (reloadFault !== undefined) out.line({ text: 'on disk: ', style: 'red' }, reloadFault);
  }
  const columns = [
    { title: 'SNAPSHOT', value: (row: (typeof snapshots)[0]) => row.snapshot.slice(0, 16) },
    { title: 'VERSION', value: (row: (typeof snapshots)[0]) => String(row.digests.version ?? 0) },
    { title: 'ACCEPTED', value: (row: (typeof snapshots)[0]) => timeText(row.acceptedAtMs) },
    { title: '', value: (row: (typeof snapshots)[0]) => (row.current ? 'current' : '') },
  ];
  printTable(out, columns, snapshots, 'no snapshot was accepted yet');
  if (shipped !== undefined) printFlips(out, 'allows more than the shipped rules', looser);
  printUnjudged(out, shipped?.unjudged ?? []);
  return EXIT.good;
}

function tellChange({ out }: CommandContext, change: PolicyChange, how: string): number {
  if (out.json) {
    out.document(change);
    return EXIT.good;
  }
  out.line(`${change.snapshot.slice(0, 12)}, version ${change.digests.version ?? 0}, ${how}`);
  const looser = change.flips.filter((flip) => flip.looser);
  const stricter = change.flips.filter((flip) => !flip.looser);
  if (looser.length > 0) printFlips(out, 'allows more', looser);
  printUnjudged(out, change.unjudged ?? []);
  if (stricter.length > 0) printFlips(out, 'allows less', stricter);
  return EXIT.good;
}

function printUnjudged(out: Output, changes: readonly string[]): void {
  if (changes.length === 0) return;
  out.line({ text: `may allow more: ${changes.length}`, style: 'bold' });
  for (const change of changes) out.line(change);
}
