import { appendFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ensureGuest } from '../../../harnesses/guest/bundle.ts';
import { ensureStateDir, stateDirFault } from '../../config/state-dir.ts';
import type { Download } from '../../download.ts';
import { findOpa, installOpa, OPA_VERSION } from '../../policy/opa.ts';
import { addSubIdsCommand, currentUser, type KernelUser, readSubIds } from '../../sandbox/slices.ts';
import type { SetupHost } from './host.ts';
import type { Added } from './receipt.ts';
import { mustRun, type SetupStep } from './step.ts';

/** A program and the Debian package it comes in. */
export interface SystemPackage {
  readonly program: string;
  readonly name: string;
}

/** What the embedded engine and every command need. */
export const BASE_PACKAGES: readonly SystemPackage[] = [
  { program: 'bwrap', name: 'bubblewrap' },
  { program: 'newuidmap', name: 'uidmap' },
  { program: 'git', name: 'git' },
];

/** What is needed besides to edit policies and to run all tests. Go only where OPA is not there yet. */
export const FULL_PACKAGES: readonly SystemPackage[] = [
  { program: 'chromium', name: 'chromium' },
  // Programs that tests run inside a sandbox; gcc with the headers that a program needs.
  { program: 'gcc', name: 'build-essential' },
  { program: 'perl', name: 'perl' },
  { program: 'python3', name: 'python3' },
  { program: 'rg', name: 'ripgrep' },
  { program: 'npm', name: 'npm' },
];

/** Oldest Go that can build OPA: from here on Go fetches a newer toolchain by itself where the module asks for one. */
const GO_MINIMUM = [1, 21] as const;

/** Programs from the system's packages. */
export function packagesStep(id: string, packages: readonly SystemPackage[]): SetupStep {
  return {
    id,
    async plan(host) {
      const missing = packages.filter(({ program }) => host.which(program) === undefined);
      if (missing.length === 0) return { kind: 'present', detail: packages.map(({ program }) => host.which(program)).join(', ') };
      const names = missing.map(({ name }) => name);
      const apt = host.which('apt-get');
      const detail = `missing: ${missing.map(({ program, name }) => (program === name ? name : `${program} (${name})`)).join(', ')}`;
      if (apt === undefined) throw new Error(`${detail}; install ${names.join(', ')} with this system's package manager`);
      const install = [apt, 'install', '--yes', '--no-install-recommends', ...names];
      return {
        kind: 'needed',
        detail,
        command: ['apt-get', ...install.slice(1)].join(' '),
        privileged: true,
        async act(prefix, log) {
          const fresh = await notInstalled(host, names);
          try {
            await mustRun(host, [...prefix, ...install]);
          } catch {
            // The package lists of a fresh system are empty or old.
            log('reading the package lists');
            await mustRun(host, [...prefix, apt, 'update']);
            await mustRun(host, [...prefix, ...install]);
          }
          return fresh.length === 0 ? [] : [{ kind: 'packages', names: fresh }];
        },
      };
    },
  };
}

/** Those of the packages that this system does not have: a program may be off PATH and its package there all the same. */
async function notInstalled(host: SetupHost, names: readonly string[]): Promise<string[]> {
  const fresh: string[] = [];
  for (const name of names) {
    const { stdout } = await host.run('dpkg', ['--status', name]);
    if (!/^Status: \S+ \S+ installed$/m.test(stdout)) fresh.push(name);
  }
  return fresh;
}

/** A range of subordinate user and group ids for the user that the kernel runs as. */
export function subIdsStep(
  user: KernelUser = currentUser(),
  files: { readonly uids: string; readonly gids: string } = { uids: '/etc/subuid', gids: '/etc/subgid' },
): SetupStep {
  return {
    id: 'sub-ids',
    async plan(host) {
      const range = await readSubIds(user, files).catch((error: { code?: string }) => {
        if (error.code === 'sub_ids_missing') return undefined;
        throw error;
      });
      if (range !== undefined) {
        const { uids, gids } = range;
        return { kind: 'present', detail: `${user.name}: uids ${uids.start}+${uids.count}, gids ${gids.start}+${gids.count}` };
      }
      const command = await addCommand(user, files);
      return {
        kind: 'needed',
        detail: `user ${user.name} has no range of subordinate ids`,
        command: command.join(' '),
        privileged: true,
        act: (prefix) => addRange(host, prefix, command, files, user),
      };
    },
  };
}

async function addCommand(user: KernelUser, files: { readonly uids: string; readonly gids: string }): Promise<readonly string[]> {
  const { readFile } = await import('node:fs/promises');
  const tables = await Promise.all([files.uids, files.gids].map((file) => readFile(file, 'utf8').catch(() => '')));
  return addSubIdsCommand(user, tables);
}

async function addRange(
  host: SetupHost,
  prefix: readonly string[],
  command: readonly string[],
  files: { readonly uids: string; readonly gids: string },
  user: KernelUser,
): Promise<readonly Added[]> {
  const [program = '', ...args] = command;
  const [first = 0, last = 0] = (args[1] ?? '').split('-').map(Number);
  const added = [{ kind: 'sub-ids', user: user.name, first, last }] as const;
  const found = host.which(program);
  if (found !== undefined) {
    await mustRun(host, [...prefix, found, ...args]);
    return added;
  }
  // A system without usermod: the tables are plain text, and root may write them.
  if (prefix.length > 0) throw new Error(`${program} is missing; add the range to ${files.uids} and ${files.gids} as root`);
  for (const file of [files.uids, files.gids]) await appendFile(file, `${args.at(-1)}:${first}:${last - first + 1}\n`);
  return added;
}

/** The program that runs inside sandboxes, built from its sources where they are. */
export const guestStep: SetupStep = {
  id: 'guest',
  async plan() {
    // Looking for it builds it when it is missing or old: there is no other way to know that it is current.
    const { file, sha256 } = await ensureGuest();
    return { kind: 'present', detail: `${file} (${sha256.slice(0, 12)})` };
  },
};

/** The directory that the kernel owns. */
export function stateDirStep(dir: string): SetupStep {
  return {
    id: 'state-directory',
    async plan() {
      const fault = stateDirFault(dir);
      if (fault !== undefined) throw new Error(`${dir} ${fault.message}: ${fault.fix}`);
      const { existsSync } = await import('node:fs');
      if (existsSync(dir)) return { kind: 'present', detail: dir };
      const act = async () => {
        ensureStateDir(dir);
        return [{ kind: 'state-directory', path: dir }] as const;
      };
      return { kind: 'needed', detail: `${dir} does not exist`, command: `mkdir -p -m 700 ${dir}`, privileged: false, act };
    },
  };
}

/** Go, only where OPA has yet to be built: not where it is there, and not where configuration says from where to fetch it. */
export const goStep = (download?: Download): SetupStep => ({
  id: 'go',
  async plan(host) {
    if (await opaIn(host)) return { kind: 'present', detail: 'not needed: OPA is there' };
    const go = host.which('go');
    if (go === undefined) {
      if (download !== undefined) return { kind: 'present', detail: `not needed: OPA is fetched from ${download.url}` };
      // The Go of an old release is not worth installing.
      const { stdout } = await host.run('apt-cache', ['policy', 'golang-go']);
      requireGo('golang-go of this system', /Candidate: (?:\d+:)?(\d+)\.(\d+)/.exec(stdout));
      return packagesStep('go', [{ program: 'go', name: 'golang-go' }]).plan(host);
    }
    const version = /go(\d+)\.(\d+)/.exec((await host.run(go, ['version'])).stdout);
    requireGo(go, version);
    return { kind: 'present', detail: `${go} ${version?.[1]}.${version?.[2]}` };
  },
});

/** @throws Error saying what to do when a version that is known is too old to build OPA with */
function requireGo(what: string, version: RegExpExecArray | null): void {
  const [major = 0, minor = 0] = version?.slice(1).map(Number) ?? GO_MINIMUM;
  if (major > GO_MINIMUM[0] || (major === GO_MINIMUM[0] && minor >= GO_MINIMUM[1])) return;
  throw new Error(
    `${what} is ${major}.${minor}, and OPA needs ${GO_MINIMUM.join('.')} or newer to build: put a newer Go on PATH, or OPA ${OPA_VERSION} itself`,
  );
}

/** OPA in its pinned version, to edit policies. */
export const opaStep = (download?: Download): SetupStep => ({
  id: 'opa',
  async plan(host) {
    const found = await opaIn(host);
    if (found !== undefined) return { kind: 'present', detail: `${found} ${OPA_VERSION}` };
    return {
      kind: 'needed',
      detail: `OPA ${OPA_VERSION} is missing`,
      command:
        host.which('go') === undefined && download !== undefined
          ? `fetch ${download.url} (sha256 ${download.sha256})`
          : `go install github.com/open-policy-agent/opa@v${OPA_VERSION}`,
      privileged: false,
      act: async (_prefix, log) => {
        return [{ kind: 'opa', path: dirname(await installOpa(log, { env: { ...host.env }, download })) }];
      },
    };
  },
});

const opaIn = (host: SetupHost): Promise<string | undefined> =>
  findOpa({ env: { ...host.env } }).catch((error: { code?: string }) => {
    if (error.code === 'policy_tool_missing') return undefined;
    throw error;
  });
