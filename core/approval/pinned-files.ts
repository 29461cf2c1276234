import { posix } from 'node:path';
import type { Reason, ShellExecArgs } from '../capability/types.ts';
import { SandboxError } from '../errors.ts';
import { sha256Hex } from '../json.ts';
import { ExactMatcher } from '../leak/exact.ts';
import { scanText } from '../leak/scan.ts';
import { SAFETY } from '../limits.ts';
import type { ApprovalStore } from '../ports/approval-store.ts';
import type { SandboxTools } from '../ports/placement.ts';
import type { Reference } from './references.ts';
import type { KeptFile, ReferencedFile } from './types.ts';

/** Where the bytes that were approved lie in a sandbox: tools may read and run them and change nothing there. */
export const APPROVED_DIR = '/run/outwork-approved';

export interface Captured {
  readonly files: readonly ReferencedFile[];
  readonly kept: readonly KeptFile[];
  readonly texts: readonly (string | undefined)[];
}

/**
 * Brings the files that a command runs to the kernel, which hashes them: the guest's word on what they hold counts for nothing later.
 * A file that is not there, no regular one, too large, or holds a live secret (what is kept is shown to people) is a reason not to ask.
 * @throws SandboxError when the sandbox is lost
 */
export async function captureFiles(
  tools: SandboxTools,
  references: readonly Reference[],
  secrets: readonly string[],
  signal: AbortSignal,
): Promise<Captured | Reason> {
  const exact = new ExactMatcher(secrets);
  const files: ReferencedFile[] = [];
  const kept: KeptFile[] = [];
  const texts: (string | undefined)[] = [];
  for (const { argument, path } of references) {
    const bytes = await readWhole(tools, path, signal);
    if (!(bytes instanceof Uint8Array)) return bytes;
    const text = textOf(bytes);
    if (scanText(text ?? Buffer.from(bytes).toString('latin1'), exact, { shapes: false }).length > 0)
      return unusable(path, 'it holds a live secret');
    const sha256 = sha256Hex(bytes);
    files.push({ argument, path, sha256, size: bytes.length });
    kept.push({ sha256, body: Buffer.from(bytes).toString('base64') });
    texts.push(text);
  }
  return { files, kept, texts };
}

async function readWhole(tools: SandboxTools, path: string, signal: AbortSignal): Promise<Uint8Array | Reason> {
  try {
    const read = await tools.file({ op: 'read', path, maxBytes: SAFETY.approvalFileBytes }, signal);
    if (read.op !== 'read') return unusable(path, 'the sandbox answered another question');
    if (read.truncated) return unusable(path, `it is larger than ${SAFETY.approvalFileBytes} bytes`);
    return Buffer.from(read.body, read.encoding);
  } catch (error) {
    if (!(error instanceof SandboxError) || ['guest_lost', 'not_running', 'timeout'].includes(error.code)) throw error;
    return unusable(path, error.code);
  }
}

const unusable = (path: string, why: string): Reason => ({
  code: 'approval_file_unusable',
  message: `The file ${path}, which the command runs, cannot be kept for an approval: ${why}`,
});

/** The kept bytes of every file, as they were hashed; undefined when one is gone or is not what it was. */
export async function keptBodies(store: ApprovalStore, files: readonly ReferencedFile[]): Promise<readonly string[] | undefined> {
  const bodies: string[] = [];
  for (const { sha256 } of files) {
    const body = await store.file(sha256);
    if (body === undefined || sha256Hex(Buffer.from(body, 'base64')) !== sha256) return undefined;
    bodies.push(body);
  }
  return bodies;
}

/**
 * Puts approved bytes where they are run from.
 * @returns the command with the approved files in place of the ones it named
 * @throws SandboxError
 */
export async function placeFiles(
  tools: SandboxTools,
  { argv }: Pick<ShellExecArgs, 'argv'>,
  files: readonly ReferencedFile[],
  bodies: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const placed = [...argv];
  for (const [at, { argument, path, sha256 }] of files.entries()) {
    const name = posix.basename(path);
    await tools.file({ op: 'place', sha256, name, body: bodies[at] ?? '' }, signal);
    placed[argument] = `${APPROVED_DIR}/${sha256}/${name}`;
  }
  return placed;
}

/** Undefined for bytes that are no text. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
