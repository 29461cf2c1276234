import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';

/** Compiles the rules of the configured policy directory. @throws PrerequisiteError `policy_tool_missing`; PolicyError `policy_build_failed` */
export async function policyBuild(context: CommandContext): Promise<number> {
  const { buildPolicy } = await import('../../policy/build.ts');
  const { dir } = configOf(context).policy;
  const manifest = await buildPolicy(dir);
  if (context.out.json) context.out.document({ dir, ...manifest });
  else context.out.line(`${dir}/dist: rules ${manifest.sources.slice(0, 12)}, built with OPA ${manifest.opa}`);
  return EXIT.good;
}

/** Format, types, conventions, tests and coverage of the rules, and whether `dist/` was built from them. @throws PolicyError, PrerequisiteError */
export async function policyTest(context: CommandContext): Promise<number> {
  const { testPolicy } = await import('../../policy/test-policy.ts');
  const { dir } = configOf(context).policy;
  const report = await testPolicy(dir);
  if (context.out.json) context.out.document({ dir, ok: true, ...report });
  else context.out.line(`${dir}: ${report.tests} tests passed, ${report.coverage} % covered, dist is current`);
  return EXIT.good;
}
