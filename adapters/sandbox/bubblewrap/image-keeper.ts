import type { Logger } from '../../../core/seams/logger.ts';
import type { ImageStatus } from '../../../core/seams/sandbox-engine.ts';
import type { Image, ImageSources } from './image.ts';
import { removeOtherImages, type StagedImage, stageImage } from './image-store.ts';

/** The image of one engine: verified once, and again when something speaks against it. */
export interface ImageKeeper {
  /** The image that a sandbox of this generation is made of; it stays until `release`. @throws as `stageImage` */
  use(generation: string): Promise<Image>;
  /** Nothing of this generation is alive. */
  release(generation: string): Promise<void>;
  /** Verifies what is there, builds when it must or shall, and removes what no sandbox uses. @throws as `stageImage` */
  renew(options: { readonly force?: boolean | undefined }): Promise<Omit<ImageStatus, 'engine'>>;
  /** A start failed or a sandbox ended by itself: the next one looks at every byte again. */
  suspect(): void;
}

export function keepImage(
  options: ImageSources & { readonly imagesDir: string; readonly log?: Pick<Logger, 'info' | 'warn'> | undefined },
): ImageKeeper {
  const { imagesDir, log } = options;
  const used = new Map<string, string>();
  let kept: Promise<StagedImage> | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** One at a time: two would build twice. What is missing can be mended while the kernel runs, so a failure is not kept. */
  const stage = (force: boolean): Promise<StagedImage> => {
    const staging = last.then(async () => {
      const image = await stageImage({ ...options, force });
      tell(image.status);
      return image;
    });
    last = staging.catch(() => {});
    kept = staging;
    staging.catch(() => {
      if (kept === staging) kept = undefined;
    });
    return staging;
  };

  const tell = ({ built, faults, digest }: StagedImage['status']) => {
    if (!built || faults.length === 0) return;
    // Images of older sources are what an upgrade leaves; anything else should not have happened.
    const bad = faults.filter(({ why }) => why !== 'stale');
    if (bad.length === 0) log?.info({ digest }, 'the image of the sandboxes was of other sources: built again');
    else
      log?.warn(
        { digest, faults: bad.slice(0, 8) },
        `the image of the sandboxes is not as it was built (${textOfFaults(bad)}): built again`,
      );
  };

  const clean = async (current: string): Promise<number> => removeOtherImages(imagesDir, new Set([current, ...used.values()]));

  return {
    async use(generation) {
      const image = await (kept ?? stage(false));
      used.set(generation, image.dir);
      return image;
    },
    async release(generation) {
      const dir = used.get(generation);
      used.delete(generation);
      const current = await kept?.catch(() => undefined);
      if (dir === undefined || current === undefined || dir === current.dir) return;
      await clean(current.dir);
    },
    async renew({ force = false }) {
      const { status, dir } = await stage(force);
      return { ...status, removed: await clean(dir) };
    },
    suspect() {
      kept = undefined;
    },
  };
}

/** The first few faults, for a line of a log or of `doctor`. */
export const textOfFaults = (faults: StagedImage['status']['faults']): string =>
  faults
    .slice(0, 3)
    .map(({ part, why }) => `${part} ${why}`)
    .join(', ') + (faults.length > 3 ? ', …' : '');
