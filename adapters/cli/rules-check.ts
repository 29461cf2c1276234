import { join } from 'node:path';
import { PolicyError } from '../../core/errors.ts';
import { connectOperator } from '../api/operator-client.ts';
import { OPERATOR_SOCKET } from '../api/operator-methods.ts';
import { compareWithShipped, type ShippedComparison } from '../policy/shipped.ts';
import type { Check } from '../sandbox/check.ts';

const LOOK = 'outwork policy status';

/**
 * What a person should know of the rules of a state directory, and no reason not to run: whether they allow more than the shipped ones, and whether
 * the kernel that runs refuses what is on disk.
 */
export async function checkRules(stateDir: string, dir: string, siteDir: string | undefined): Promise<readonly Check[]> {
  const policy = { dir, ...(siteDir === undefined ? {} : { siteDir }) };
  const compared = await compareWithShipped({ stateDir, policy }).catch((error: unknown) => {
    // Rules that do not load are told by the check of the rules themselves.
    if (error instanceof PolicyError) return undefined;
    throw error;
  });
  return [...(compared === undefined ? [] : [shippedCheck(compared)]), await diskCheck(stateDir)];
}

function shippedCheck({ flips, unjudged }: ShippedComparison): Check {
  const id = 'rules.shipped';
  const looser = flips.filter((flip) => flip.looser).length + unjudged.length;
  if (looser === 0) return { id, ok: true, detail: 'allow nothing that the shipped ones do not' };
  return { id, ok: false, detail: `allow more than the shipped ones: ${looser} answers`, fix: LOOK, warning: true };
}

async function diskCheck(stateDir: string): Promise<Check> {
  const id = 'rules.disk';
  await using kernel = await connectOperator(join(stateDir, OPERATOR_SOCKET));
  if (kernel === undefined) return { id, ok: true, detail: 'no kernel runs; the next one looks at them' };
  const { reloadFault, ageMs = 0 } = await kernel.policyStatus();
  const age = `loaded ${Math.round(ageMs / 1000)} s ago`;
  if (reloadFault === undefined) return { id, ok: true, detail: `are those that run, ${age}` };
  return { id, ok: false, detail: `are refused, older ones run, ${age}: ${reloadFault}`, fix: LOOK, warning: true };
}
