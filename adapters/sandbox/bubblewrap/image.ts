import { access, readFile, stat } from 'node:fs/promises';
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
  /** Holds `etc`, `opt`, the table of the stage's mounts, the seccomp filter and the manifest. */
  readonly dir: string;
  /** Those of `HOST_ETC` that this host has; each has its mount point in `etc`. */
  readonly hostEtc: readonly string[];
}

/** What an image must consist of, made from its sources and not read from any image. */
export interface ImageContent {
  /** Digest of every part: the label that each of them carries. */
  readonly source: string;
  /** Paths below the image, directories before what lies in them. */
  readonly parts: ReadonlyMap<string, Uint8Array | 'directory'>;
  readonly hostEtc: readonly string[];
}

export interface ImageSources {
  readonly guestBundle: string;
  readonly initScript: string;
  readonly nodeBinary: string;
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
 * What the image of this machine and these sources must be. Reads the sources and nothing of any image.
 *
 * @throws PrerequisiteError `component_missing` when guest, init or Node cannot be read by another user; `engine_unavailable` on another
 * machine than x86_64 and arm64
 */
export async function describeImage(sources: ImageSources): Promise<ImageContent> {
  await checkNode(sources.nodeBinary);
  const [guest, init, hostEtc] = await Promise.all([readPart(sources.guestBundle), readPart(sources.initScript), presentHostEtc()]);
  const parts = new Map<string, Uint8Array | 'directory'>([
    ['etc', 'directory'],
    ['opt', 'directory'],
    ...Object.entries(ETC).map(([name, text]): [string, Uint8Array] => [`etc/${name}`, Buffer.from(text)]),
    ...hostEtc.flatMap(mountPoint),
    [MOUNT_TABLE_NAME, Buffer.from(MOUNT_TABLE)],
    [SECCOMP_NAME, seccompFilter(machineArch())],
    ['opt/guest.cjs', guest],
    ['opt/init.sh', init],
    ['opt/node', Buffer.alloc(0)],
  ]);
  const digests = Object.fromEntries([...parts].map(([path, body]) => [path, partDigest(body)]));
  return { source: digestOf('bubblewrap-image', { digests, hostEtc }), parts, hostEtc };
}

/** What the manifest says of a part. */
export const partDigest = (body: Uint8Array | 'directory'): string => (body === 'directory' ? body : sha256Hex(body));

/** The directories above a path of the host's `/etc`, and the directory or empty file that it is mounted on. */
function mountPoint(path: string): [string, Uint8Array | 'directory'][] {
  const made: [string, Uint8Array | 'directory'][] = [];
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) made.push([`etc/${path.slice(0, at)}`, 'directory']);
  if (!path.endsWith('/')) made.push([`etc/${path}`, Buffer.alloc(0)]);
  return made;
}

function machineArch(): SeccompArch {
  if (process.arch === 'x64' || process.arch === 'arm64') return process.arch;
  throw new PrerequisiteError('engine_unavailable', `there is no seccomp filter for ${process.arch}`, {
    hint: 'x86_64 or arm64 is needed',
  });
}

async function presentHostEtc(): Promise<readonly string[]> {
  const present = await Promise.all(HOST_ETC.map((path) => exists(join('/etc', path))));
  return HOST_ETC.filter((_, index) => present[index]);
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
