import { checkComponent, requiredComponents } from '../../adapters/cli/components.ts';
import { machine } from '../../adapters/cli/setup/host.ts';
import { packageFolder } from '../../adapters/config.ts';
import { PrerequisiteError } from '../../core/errors.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';

/**
 * Fails when a component that `OUTWORK_REQUIRE` names (a comma list) is missing or unknown, naming every fault. Tests never skip for a
 * missing component: with this the run says so at its beginning, without it the test that needs it fails.
 *
 * @throws PrerequisiteError `component_missing`
 */
export async function requireComponents(env: { readonly [name: string]: string | undefined } = process.env): Promise<void> {
  const { known, unknown } = requiredComponents(env.OUTWORK_REQUIRE);
  const { diskReserveMiB } = SANDBOX_LIMITS;
  const scope = {
    host: machine(env),
    stateDir: '/nonexistent/outwork',
    siteDir: undefined,
    policyDir: packageFolder('policies'),
    diskReserveMiB,
  };
  const faults = unknown.map((name) => `${name}: no such component`);
  for (const name of known) {
    const failed = (await checkComponent(name, scope)).filter(({ ok }) => !ok);
    faults.push(...failed.map(({ id, detail, fix }) => `${id}: ${detail}${fix === undefined ? '' : ` (${fix})`}`));
  }
  if (faults.length > 0) {
    throw new PrerequisiteError('component_missing', `OUTWORK_REQUIRE:\n${faults.join('\n')}`, { hint: 'outwork setup --full' });
  }
}
