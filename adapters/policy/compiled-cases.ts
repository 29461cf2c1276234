import { PolicyError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json.ts';
import { SAFETY } from '../../core/limits.ts';
import { differs, isLooser } from '../../core/policy/looseness.ts';
import type { Clock } from '../../core/seams/clock.ts';
import type { Bundle } from './bundle.ts';
import { overlay, type PolicyCase } from './cases.ts';
import { PolicyWorker } from './policy-worker.ts';
import { ENTRYPOINT } from './sources.ts';
import { readVerdict } from './verdict.ts';

/**
 * Every row of the table through the compiled rules: what stands in for `opa test` where OPA is not installed. Beside rules of a site the
 * answer to a shipped row may be stricter, for they may narrow anything.
 *
 * @returns how many rows there are
 * @throws PolicyError `policy_test_failed` naming every row whose answer is another
 */
export async function testCompiledCases(bundle: Bundle, module: WebAssembly.Module, clock: Clock): Promise<number> {
  const faults: string[] = [];
  for (const [settings, rows] of byData(bundle)) {
    const worker = await PolicyWorker.start({
      module,
      dataJson: settings,
      entrypoint: ENTRYPOINT,
      memoryBytes: SAFETY.policyMemoryBytes,
      warmUp: rows.slice(0, 1).map(({ input }) => JSON.stringify(input)),
      clock,
    });
    try {
      for (const row of rows) faults.push(...faultOf(row, worker, bundle.site !== undefined && !row.site));
    } finally {
      await worker.terminate();
    }
  }
  if (faults.length > 0) throw new PolicyError('policy_test_failed', `cases: ${faults.join('\n')}`);
  return bundle.cases.length;
}

/** Rows by the data they are asked under: each needs a worker of its own. */
function byData({ cases, dataJson }: Bundle): ReadonlyMap<string, readonly PolicyCase[]> {
  const data = JSON.parse(dataJson) as { settings: Record<string, unknown> };
  const groups = new Map<string, PolicyCase[]>();
  for (const row of cases) {
    const json = row.settings === undefined ? dataJson : canonicalJson({ ...data, settings: overlay(data.settings, row.settings) });
    groups.set(json, [...(groups.get(json) ?? []), row]);
  }
  return groups;
}

function faultOf(row: PolicyCase, worker: PolicyWorker, mayBeStricter: boolean): readonly string[] {
  const evaluation = worker.evaluate(JSON.stringify(row.input), SAFETY.policyDeadlineMs);
  if (evaluation.outcome !== 'answer') return [`${row.kind}: ${row.note}: ${evaluation.outcome}`];
  const verdict = readVerdict(evaluation.text);
  if (mayBeStricter && !isLooser(row, verdict)) return [];
  const codes = [...new Set(verdict.reasons.map(({ code }) => code))].sort();
  if (verdict.effect === row.effect && codes.join() === [...row.codes].sort().join() && !differs(row, verdict)) return [];
  return [`${row.kind}: ${row.note}: wanted ${row.effect} (${row.codes.join(', ')}), got ${verdict.effect} (${codes.join(', ')})`];
}
