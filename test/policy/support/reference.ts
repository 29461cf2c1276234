import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SHIPPED } from './policy-dir.ts';

const load = (name: string) => parse(readFileSync(join(SHIPPED, 'data', `${name}.yaml`), 'utf8'));

/**
 * The shipped rules once more, in another language and by nobody's compiler: what may be allowed under data that denies `denied`. Written
 * to be read, and never looser than the rules: a question it does not understand is not allowed.
 */
export function referenceAllows(input: Readonly<Record<string, unknown>>, denied: readonly string[]): boolean {
  switch (input.kind) {
    case 'call':
      return callAllowed(input, denied);
    case 'placement':
      return placementAllowed(input);
    case 'approval':
      return approvalAllowed(input);
    default:
      return false;
  }
}

const { allowed, launchers } = load('call') as { allowed: Record<string, string[]>; launchers: string[] };
const placements = load('placement') as { allowed: string[]; own_harnesses: string[] };

function callAllowed(
  { capability, caller, args, origin, sandbox_origins }: Readonly<Record<string, unknown>>,
  denied: readonly string[],
): boolean {
  if (typeof capability !== 'string' || !Object.hasOwn(allowed, capability) || !allowed[capability]?.includes(String(caller))) return false;
  if (capability !== 'shell.exec') return true;
  if (Array.isArray(sandbox_origins) && sandbox_origins.includes('trigger') && origin !== 'trigger') return false;
  const { argv, argv_length: length } = args as { argv: readonly string[]; argv_length: number };
  const base = (path: string) => path.split('/').at(-1) ?? '';
  if (denied.includes(base(argv[0] ?? ''))) return false;
  if (!launchers.includes(base(argv[0] ?? ''))) return true;
  if (argv.length !== length || argv.some((item) => item.endsWith('…'))) return false;
  const words = argv.flatMap((item) => item.split(/[\s;|&()<>{}"'=,\\$`]+/));
  return !words.some((word) => denied.includes(base(word)));
}

function placementAllowed({ placement, harness, profile }: Readonly<Record<string, unknown>>): boolean {
  if (profile === 'production') return false;
  if (placement === 'host-loop-shell' && !placements.own_harnesses.includes(String(harness))) return false;
  return placements.allowed.includes(String(placement));
}

function approvalAllowed({ answer, approver, actor }: Readonly<Record<string, unknown>>): boolean {
  const { user, roles } = approver as { user: string; roles: readonly string[] };
  const own = user === (actor as { user: string }).user;
  return answer === 'deny' ? own || roles.includes('approver') : answer === 'approve' && !own && roles.includes('approver');
}
