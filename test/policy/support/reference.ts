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
    case 'egress':
      return egressAllowed(input);
    case 'trigger':
      return triggerAllowed(input);
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

/** The list that random requests are asked under: one host, and what is below another. */
export const LISTED = {
  hosts: {
    'example.com': [{ ports: [443], schemes: ['https'], methods: ['GET'], paths: ['/a/**'], users: ['ada'] }],
    '*.example.net': [
      { ports: [443], schemes: ['https'], methods: ['CONNECT', 'GET'], paths: ['/**'] },
      { ports: [443], schemes: ['https'], methods: ['POST'], paths: ['/b'], recipe: 'forge' },
    ],
  },
  addresses: {},
  denied: { 'admin.example.net': 'for people only' },
};

function egressAllowed(input: Readonly<Record<string, unknown>>): boolean {
  const { host, port, scheme, method, path, credential, recipe, operations_parsed: parsed, scope, headers } = input;
  if (!Array.isArray(headers) || port !== 443 || scheme !== 'https') return false;
  if (headers.filter(({ name }) => name.toLowerCase() === 'host').length > 1) return false;
  if (host === 'example.com')
    return credential === 'none' && method === 'GET' && path === '/a/x' && (scope as { user: string }).user === 'ada';
  if (host !== 'www.example.net' && host !== 'a.b.example.net') return false;
  if (method === 'CONNECT') return credential === 'none' && path === '';
  if (method === 'GET') return credential === 'none' && (path === '/a/x' || path === '/b');
  return (
    method === 'POST' && path === '/b' && recipe === 'forge' && (credential === 'none' || (credential === 'present' && parsed === true))
  );
}

/** Under the shipped data every new trigger asks; taking one away does not. */
function triggerAllowed({ action, caller, actor, scope }: Readonly<Record<string, unknown>>): boolean {
  const own = (actor as { user: string }).user === (scope as { user: string }).user;
  return action === 'delete' && own && ['executor', 'product', 'operator'].includes(String(caller));
}
