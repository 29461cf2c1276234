import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, open, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { OutworkError, PrerequisiteError, SandboxError } from '../../../core/errors.ts';
import type { ImageFault, ImageStatus } from '../../../core/seams/sandbox-engine.ts';
import { lacksRoom, MAKE_ROOM } from '../../no-room.ts';
import { syncPath } from '../../sync-path.ts';
import { removeTree } from '../remove-tree.ts';
import { describeImage, type Image, type ImageContent, type ImageSources } from './image.ts';
import { inspectImage, MANIFEST_NAME, manifestOf, PART_MODE } from './image-inspection.ts';

export interface StagedImage extends Image {
  readonly status: Omit<ImageStatus, 'engine' | 'removed'>;
}

const DRAFT = 'draft-';
const REBUILD = 'outwork sandbox image build';

/**
 * The image below `imagesDir`, adopted when the gate finds nothing wrong with it, else built: into a directory of its own, every byte on the
 * disk before it gets its name, so that there is never half of one. An image is never changed and never mended in place.
 *
 * @throws PrerequisiteError as `describeImage`, and `image_unusable` when it cannot be built here; SandboxError `disk_full`
 */
export async function stageImage(
  options: ImageSources & { readonly imagesDir: string; readonly force?: boolean | undefined },
): Promise<StagedImage> {
  const { imagesDir, force = false } = options;
  const content = await describeImage(options);
  const { dir: adopted, faults } = await findImage(imagesDir, content);
  if (adopted !== undefined && !force) return staged(content, adopted, { built: false, faults: [] });
  return staged(content, await buildImage(imagesDir, content), { built: true, faults });
}

/** What is wrong with the images that are there; no image at all is no fault. Builds and changes nothing. */
export async function checkImage(
  options: ImageSources & { readonly imagesDir: string },
): Promise<{ readonly dir: string | undefined; readonly source: string; readonly faults: readonly ImageFault[] }> {
  const content = await describeImage(options);
  return { source: content.source, ...(await findImage(options.imagesDir, content)) };
}

/** Removes every image and draft but `keep`. @returns how many are gone; one that cannot be removed costs nothing but its room */
export async function removeOtherImages(imagesDir: string, keep: ReadonlySet<string>): Promise<number> {
  const others = (await namesIn(imagesDir)).map((name) => join(imagesDir, name)).filter((dir) => !keep.has(dir));
  const removed = await Promise.allSettled(others.map(removeTree));
  return removed.filter(({ status }) => status === 'fulfilled').length;
}

const staged = (
  { source, hostEtc }: ImageContent,
  dir: string,
  status: { readonly built: boolean; readonly faults: readonly ImageFault[] },
): StagedImage => ({ digest: source, dir, hostEtc, status: { digest: source, ...status } });

async function findImage(
  imagesDir: string,
  content: ImageContent,
): Promise<{ readonly dir: string | undefined; readonly faults: readonly ImageFault[] }> {
  let faults: readonly ImageFault[] = [];
  // Those of these sources first: an older one beside them is no fault of theirs.
  const names = (await namesIn(imagesDir)).filter((name) => !name.startsWith(DRAFT));
  for (const name of names.sort((a, b) => Number(isOf(content, b)) - Number(isOf(content, a)))) {
    const dir = join(imagesDir, name);
    const gate = await inspectImage(dir, content);
    if (gate.skip) return { dir, faults: [] };
    if (faults.length === 0) faults = gate.faults;
  }
  return { dir: undefined, faults };
}

const nameOf = ({ source }: ImageContent): string => source.slice(0, 32);
const isOf = (content: ImageContent, name: string): boolean => name.startsWith(nameOf(content));

async function buildImage(imagesDir: string, content: ImageContent): Promise<string> {
  let draft: string | undefined;
  try {
    await mkdir(imagesDir, { recursive: true, mode: 0o700 });
    draft = await mkdtemp(join(imagesDir, DRAFT));
    await fill(draft, content);
    const dir = join(imagesDir, `${nameOf(content)}-${randomBytes(4).toString('hex')}`);
    await rename(draft, dir);
    await syncPath(imagesDir);
    return dir;
  } catch (cause) {
    if (draft !== undefined) await removeTree(draft).catch(() => {});
    if (cause instanceof OutworkError) throw cause;
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    const message = `no image of a sandbox can be built in ${imagesDir} (${code})`;
    if (lacksRoom(cause)) throw new SandboxError('disk_full', message, { cause, hint: MAKE_ROOM });
    throw new PrerequisiteError('image_unusable', message, { cause, hint: `mend ${imagesDir}, then: ${REBUILD}` });
  }
}

async function fill(draft: string, content: ImageContent): Promise<void> {
  const dirs = [...content.parts].flatMap(([path, body]) => (body === 'directory' ? [path] : []));
  const files = [...content.parts].flatMap(([path, body]): [string, Uint8Array][] => (body === 'directory' ? [] : [[path, body]]));
  for (const path of dirs) await mkdir(join(draft, path));
  await Promise.all([...files, [MANIFEST_NAME, manifestOf(content)] as const].map(([path, body]) => writePart(join(draft, path), body)));
  // Modes are set after creation, because the kernel's umask may be narrower than what the ids of a sandbox need.
  for (const path of ['', ...dirs]) await chmod(join(draft, path), PART_MODE.directory);
  await Promise.all(['', ...dirs].map((path) => syncPath(join(draft, path))));
}

async function writePart(path: string, body: string | Uint8Array): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(body);
    await file.chmod(PART_MODE.file);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function namesIn(imagesDir: string): Promise<string[]> {
  return readdir(imagesDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw new PrerequisiteError('image_unusable', `${imagesDir} cannot be read (${error.code})`, {
      cause: error,
      hint: `chmod u+rwx ${imagesDir}`,
    });
  });
}
