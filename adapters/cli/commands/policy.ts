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
