import { access, chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PrerequisiteError } from '../../../core/errors.ts';
import { digestOf, sha256Hex } from '../../../core/json.ts';
import { seccompFilter } from '../seccomp/filter.ts';
import type { SeccompArch } from '../seccomp/rule.ts';
import { INSIDE } from '../slices.ts';
import { MOUNT_TABLE, MOUNT_TABLE_NAME, SECCOMP_NAME } from './stage.ts';

/** What the engine itself puts into a sandbox: `/etc` and `/opt/outwork`, as directories of the state directory, read-only. */
export interface Image {
  readonly digest: string;
  /** Holds `etc`, `opt`, the table of the stage's mounts and the seccomp filter. */
  readonly dir: string;
  /** Those of `HOST_ETC` that this host has; each has its mount point in `etc`. */
  readonly hostEtc: readonly string[];
}

/** Paths of the host's own `/etc` that programs below `/usr` point into; each is mounted read-only when the host has it. */
export const HOST_ETC = ['alternatives/', 'ssl/certs/', 'pki/ca-trust/extracted/', 'ld.so.cache', 'ssl/openssl.cnf'] as const;

const ETC: Readonly<Record<string, string>> = {
  passwd: [
    `root:x:${INSIDE.executorUid}:${INSIDE.executorGid}:executor:/:/usr/sbin/nologin`,
    `agent:x:${INSIDE.toolUid}:${INSIDE.toolGid}:agent:/home/agent:/bin/bash`,
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
    '',
  ].join('\n'),
  group: [
    `root:x:${INSIDE.executorGid}:`,
    `agent:x:${INSIDE.toolGid}:`,
    // Named, because programs such as id(1) complain about a group without a name.
    ...Array.from({ length: INSIDE.invocationGids }, (_, i) => `run${i}:x:${INSIDE.firstInvocationGid + i}:`),
    'nogroup:x:65534:',
    '',
  ].join('\n'),
  'nsswitch.conf': 'passwd: files\ngroup: files\nshadow: files\nhosts: files\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  'resolv.conf': '# no name server: there is no network\n',
  hostname: 'sandbox\n',
  shells: '/bin/sh\n/bin/bash\n',
};

/**
 * Writes the image below `imagesDir`, once per content: a directory is complete when it has its final name, and is never changed after.
 *
 * @throws PrerequisiteError `component_missing` when guest, init or Node cannot be read by another user; `engine_unavailable` on another
 * machine than x86_64 and arm64
 */
export async function stageImage(options: {
  readonly imagesDir: string;
  readonly guestBundle: string;
  readonly initScript: string;
  readonly nodeBinary: string;
}): Promise<Image> {
  await checkNode(options.nodeBinary);
  const [guest, init] = await Promise.all([readPart(options.guestBundle), readPart(options.initScript)]);
  const hostEtc = await presentHostEtc();
  const filter = seccompFilter(machineArch());
  const parts = { guest: sha256Hex(guest), init: sha256Hex(init), seccomp: sha256Hex(filter) };
  const digest = digestOf('bubblewrap-image', { ...parts, etc: ETC, hostEtc, table: MOUNT_TABLE });
  const dir = join(options.imagesDir, digest.slice(0, 32));
  const image = { digest, dir, hostEtc };
  if (await exists(dir)) return image;

  await mkdir(options.imagesDir, { recursive: true, mode: 0o700 });
  const draft = await mkdtemp(`${dir}.draft-`);
  await chmod(draft, 0o755);
  for (const name of ['etc', 'opt']) await makeDir(join(draft, name));
  for (const [name, text] of Object.entries(ETC)) await makeFile(join(draft, 'etc', name), text);
  for (const path of hostEtc) {
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) await makeDir(join(draft, 'etc', path.slice(0, at)));
    if (!path.endsWith('/')) await makeFile(join(draft, 'etc', path), '');
  }
  await makeFile(join(draft, MOUNT_TABLE_NAME), MOUNT_TABLE);
  await makeFile(join(draft, SECCOMP_NAME), filter);
  await makeFile(join(draft, 'opt', 'guest.cjs'), guest);
  await makeFile(join(draft, 'opt', 'init.sh'), init);
  await makeFile(join(draft, 'opt', 'node'), '');
  await rename(draft, dir).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    await rm(draft, { recursive: true, force: true });
  });
  return image;
}

function machineArch(): SeccompArch {
  if (process.arch === 'x64' || process.arch === 'arm64') return process.arch;
  throw new PrerequisiteError('engine_unavailable', `there is no seccomp filter for ${process.arch}`, {
    hint: 'x86_64 or arm64 is needed',
  });
}

async function presentHostEtc(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of HOST_ETC) if (await exists(join('/etc', path))) found.push(path);
  return found;
}

// Modes are set again after creation, because the kernel's umask may be narrower than what the ids of a sandbox need.
async function makeDir(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o755);
}

async function makeFile(path: string, body: string | Uint8Array): Promise<void> {
  await writeFile(path, body);
  await chmod(path, 0o444);
}

async function readPart(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new PrerequisiteError('component_missing', `cannot read ${path}`, { cause, hint: 'npm run build:guest' });
  }
}

async function checkNode(path: string): Promise<void> {
  const mode = await stat(path).then(
    (found) => found.mode,
    () => 0,
  );
  if ((mode & 0o005) !== 0o005) {
    throw new PrerequisiteError('component_missing', `${path} is not a program that other users may run`, { hint: `chmod go+rx ${path}` });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
