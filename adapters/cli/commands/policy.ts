import type { PolicyPlace } from '../../policy/test-policy.ts';
import { type CommandContext, configOf, withOperations } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import { printHanging } from '../fields.ts';
import { MOST_REPLAYED } from './policy-replay.ts';

/** Where the configured policy lies. */
export function placeOf(context: CommandContext): PolicyPlace {
  const { dir, siteDir, publicKey } = configOf(context).policy;
  return { dir, siteDir, publicKey };
}

/** Compiles the rules of the configured policy directory. @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_build_failed` */
export async function policyBuild(context: CommandContext, { sign }: { readonly sign?: string } = {}): Promise<number> {
  const { buildPolicy } = await import('../../policy/build.ts');
  const { dir, siteDir } = placeOf(context);
  const { rules, ...manifest } = await buildPolicy(dir, siteDir);
  const signed = sign === undefined ? undefined : await (await import('../../policy/release.ts')).signRelease(dir, siteDir, sign);
  const out = siteDir ?? dir;
  if (context.out.json) {
    context.out.document({ dir: out, ...manifest, rules: rules.length, ...(signed && { signedVersion: signed.digests.version }) });
    return EXIT.good;
  }
  context.out.line(`${out}/dist: ${rules.length} rules, ${manifest.sources.slice(0, 12)}, built with OPA ${manifest.opa}`);
  if (signed !== undefined) context.out.line(`signed: version ${signed.digests.version}, snapshot ${signed.snapshot.slice(0, 12)}`);
  return EXIT.good;
}

/** Every gate of the rules, up to the first that fails. @throws PolicyError, PrerequisiteError */
export async function policyTest(context: CommandContext): Promise<number> {
  const { testPolicy } = await import('../../policy/test-policy.ts');
  const { dir, ...more } = placeOf(context);
  const report = await testPolicy(dir, more);
  if (context.out.json) context.out.document({ dir, ok: true, ...report });
  else {
    const { tests, coverage, cases } = report;
    context.out.line(`${dir}: ${tests} tests passed, ${coverage} % covered, ${cases} cases compiled, dist is current`);
  }
  return EXIT.good;
}

/** Every gate and a replay of recorded decisions, each on its line. @throws PrerequisiteError `policy_tool_missing` */
export async function policyCheck(context: CommandContext, { since }: { readonly since: number }): Promise<number> {
  const { checkPolicy } = await import('../../policy/test-policy.ts');
  const place = placeOf(context);
  const gates = [...(await checkPolicy(place)), await replayGate(context, place, since)];
  const ok = gates.every((gate) => gate.ok);
  if (context.out.json) context.out.document({ dir: place.dir, ok, gates });
  else {
    for (const { gate, ok: good, detail } of gates)
      printHanging(context.out, `${good ? 'ok  ' : 'FAIL'} ${gate.padEnd(19)} `, detail, { lead: good ? 'green' : 'red' });
  }
  return ok ? EXIT.good : EXIT.bad;
}

async function replayGate(context: CommandContext, { dir, siteDir }: PolicyPlace, since: number) {
  const { replayDecisions } = await import('../../policy/replay.ts');
  const rows = await withOperations(context, (kernel) => kernel.listDecisions(Math.max(0, context.io.now() - since), MOST_REPLAYED));
  try {
    const { asked, looser, stricter } = await replayDecisions(dir, siteDir, rows);
    const detail = `${asked} decisions: ${looser.length} would be looser, ${stricter.length} stricter`;
    const hint = looser.length === 0 ? '' : ' (outwork policy replay lists them)';
    return { gate: 'replay', ok: looser.length === 0, detail: `${detail}${hint}` };
  } catch (error) {
    return { gate: 'replay', ok: false, detail: (error as Error).message };
  }
}
