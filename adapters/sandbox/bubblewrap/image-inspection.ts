import { lstat, readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { sha256Hex } from '../../../core/json.ts';
import type { ImageFault } from '../../../core/seams/sandbox-engine.ts';
import { buildGate, type FoundPart } from '../build-gate.ts';
import { type ImageContent, partDigest } from './image.ts';

/** In each image: which sources it was built from, and the digest of each part. */
export const MANIFEST_NAME = 'manifest.json';

/** Modes of every part: the ids of a sandbox read it, and nobody writes it. */
export const PART_MODE = { directory: 0o755, file: 0o444 } as const;

const manifestSchema = z.object({ schema: z.literal(1), source: z.string(), parts: z.record(z.string(), z.string()) });

export const manifestOf = ({ source, parts }: ImageContent): string =>
  `${JSON.stringify({ schema: 1, source, parts: Object.fromEntries([...parts].map(([path, body]) => [path, partDigest(body)])) }, null, 1)}\n`;

/**
 * Whether the directory is exactly the image that `content` describes: every part labelled, every byte and mode as built, nothing besides.
 * Reads the parts, never adopts what it cannot read.
 */
export async function inspectImage(
  dir: string,
  content: ImageContent,
): Promise<{ readonly skip: boolean; readonly faults: readonly ImageFault[] }> {
  const manifest = await readManifest(join(dir, MANIFEST_NAME));
  const found = new Map<string, FoundPart>();
  const look = async ([path, body]: [string, Uint8Array | 'directory']) => {
    const digest = await digestOf(join(dir, path));
    if (digest === undefined) return;
    const listed = manifest?.parts[path];
    found.set(path, { label: listed === undefined ? undefined : manifest?.source, intact: digest === partDigest(body) });
  };
  const [strangers] = await Promise.all([strangersIn(dir, content), ...[...content.parts].map(look)]);
  for (const path of strangers) found.set(path, { label: content.source, intact: false });
  return buildGate(content.source, [...content.parts.keys(), ...strangers], found);
}

async function readManifest(file: string): Promise<z.infer<typeof manifestSchema> | undefined> {
  try {
    return manifestSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Digest of a part as it lies there; undefined when nothing does, and one that fits nothing when it cannot be what was built. */
async function digestOf(path: string): Promise<string | undefined> {
  try {
    const found = await lstat(path);
    const mode = found.mode & 0o7777;
    if (found.isDirectory()) return mode === PART_MODE.directory ? 'directory' : 'another mode';
    if (!found.isFile() || mode !== PART_MODE.file) return 'another kind or mode';
    return sha256Hex(await readFile(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `unreadable: ${code}`;
  }
}

/** Paths that no part explains: what lies in `etc` is in every sandbox. */
async function strangersIn(dir: string, { parts }: ImageContent): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries.map((entry) => relative(dir, join(entry.parentPath, entry.name)));
  return paths.filter((path) => path !== MANIFEST_NAME && !parts.has(path));
}
