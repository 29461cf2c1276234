import type { PrerequisiteError } from '../../core/errors.ts';
import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { openFilesLimit, requireOpenFiles } from '../config/open-files.ts';
import { loadBundle } from '../policy/bundle.ts';
import { findOpa, OPA_VERSION } from '../policy/opa.ts';
import { checkBubblewrap } from '../sandbox/bubblewrap/checks.ts';
import { checkCgroups } from '../sandbox/cgroup/check.ts';
import type { Check } from '../sandbox/check.ts';
import { checkDocker } from './docker-check.ts';
import { checkImageOf } from './image-check.ts';
import { checkRules } from './rules-check.ts';
import type { SetupHost } from './setup/host.ts';
import { checkState } from './state-check.ts';

/** Names that `OUTWORK_REQUIRE` and `doctor` know. */
export const COMPONENTS = [
  'node',
  'git',
  'bubblewrap',
  'limits',
  'guest',
  'image',
  'policy',
  'rules',
  'state',
  'opa',
  'docker',
  'go',
  'chromium',
  'tools',
] as const;
export type ComponentName = (typeof COMPONENTS)[number];

/** What looking at components needs to know. */
export interface ComponentScope {
  readonly host: SetupHost;
  readonly stateDir: string;
  readonly policyDir: string;
  /** The installation's own rules, compiled together with those. */
  readonly siteDir: string | undefined;
  /** Free space that the file system of the state directory has to keep, in MiB. */
  readonly diskReserveMiB: number;
}

const NODE_MAJOR = 24;

/** Looks at one component; every fault is a check that is not `ok`, never an error. */
export async function checkComponent(name: ComponentName, scope: ComponentScope): Promise<readonly Check[]> {
  try {
    return await CHECKS[name](scope);
  } catch (error) {
    const { message, hint } = error as { message?: string; hint?: string };
    const check = { id: name, ok: false, detail: message ?? String(error) };
    return [hint === undefined ? check : { ...check, fix: hint }];
  }
}

const TOOLS = ['gcc', 'perl', 'python3', 'rg', 'npm'] as const;

const CHECKS: Readonly<Record<ComponentName, (scope: ComponentScope) => Promise<readonly Check[]>>> = {
  async node() {
    const ok = Number.parseInt(process.versions.node, 10) >= NODE_MAJOR;
    const check = { id: 'node', ok, detail: `${process.versions.node} at ${process.execPath}` };
    return [ok ? check : { ...check, fix: 'npm ci --include=optional' }, openFilesCheck()];
  },
  git: ({ host }) => programCheck(host, 'git'),
  go: ({ host }) => programCheck(host, 'go'),
  chromium: ({ host }) => programCheck(host, 'chromium'),
  /** What tests run inside a sandbox, to see that it works there. */
  tools: async ({ host }) => (await Promise.all(TOOLS.map((program) => programCheck(host, program)))).flat(),
  bubblewrap: ({ stateDir }) => checkBubblewrap({ stateDir }),
  docker: ({ host }) => checkDocker(host),
  limits: () => checkCgroups(),
  async guest() {
    const { file, sha256 } = await ensureGuest();
    return [{ id: 'guest', ok: true, detail: `${file} (${sha256.slice(0, 12)})` }];
  },
  image: ({ stateDir }) => checkImageOf(stateDir),
  async policy({ policyDir, siteDir }) {
    const { digests } = await loadBundle(policyDir, siteDir);
    return [{ id: 'policy', ok: true, detail: `${policyDir}: rules ${digests.rules.slice(0, 12)}, data ${digests.data.slice(0, 12)}` }];
  },
  rules: ({ stateDir, policyDir, siteDir }) => checkRules(stateDir, policyDir, siteDir),
  state: ({ stateDir, diskReserveMiB }) => checkState(stateDir, diskReserveMiB),
  async opa({ host }) {
    return [{ id: 'opa', ok: true, detail: `${await findOpa({ env: { ...host.env } })} ${OPA_VERSION}` }];
  },
};

function openFilesCheck(): Check {
  const limit = openFilesLimit();
  try {
    requireOpenFiles(limit);
    return { id: 'open-files', ok: true, detail: `${limit} at once` };
  } catch (error) {
    const { message, hint = '' } = error as PrerequisiteError;
    return { id: 'open-files', ok: false, detail: message, fix: hint };
  }
}

async function programCheck(host: SetupHost, program: string): Promise<readonly Check[]> {
  const found = host.which(program);
  if (found === undefined) return [{ id: program, ok: false, detail: `${program} is not on PATH`, fix: 'outwork setup --full' }];
  return [{ id: program, ok: true, detail: found }];
}

/** The components that `OUTWORK_REQUIRE` names, comma-separated; unknown names are given apart. */
export function requiredComponents(text: string | undefined): { readonly known: ComponentName[]; readonly unknown: string[] } {
  const names = (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const isKnown = (name: string): name is ComponentName => (COMPONENTS as readonly string[]).includes(name);
  return { known: names.filter(isKnown), unknown: names.filter((name) => !isKnown(name)) };
}
