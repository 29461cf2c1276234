import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepImage } from '../../adapters/sandbox/bubblewrap/image-keeper.ts';
import { checkImage, stageImage } from '../../adapters/sandbox/bubblewrap/image-store.ts';

let dir: string;
let options: Parameters<typeof stageImage>[0];
let umask: number;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'ow-image-'));
  options = {
    imagesDir: join(dir, 'image'),
    guestBundle: join(dir, 'guest.cjs'),
    initScript: join(dir, 'init.sh'),
    nodeBinary: process.execPath,
  };
  umask = process.umask(0o077);
  await writeFile(options.guestBundle, 'guest 1');
  await writeFile(options.initScript, 'init');
});
afterEach(async () => {
  process.umask(umask);
  await rm(dir, { recursive: true });
});

/** Changes one file of an image as only damage does: its mode stays. */
async function damage(image: string, part: string, change: (file: string) => Promise<void>): Promise<void> {
  const file = join(image, part);
  await chmod(file, 0o600);
  await change(file);
  await chmod(file, 0o444).catch(() => {});
}

describe('the image of the bubblewrap engine', () => {
  it('BL-106 is readable by the ids of a sandbox although the kernel’s umask is 077', async () => {
    const image = await stageImage(options);
    for (const path of ['.', 'etc', 'opt']) expect((await stat(join(image.dir, path))).mode & 0o777).toBe(0o755);
    for (const path of ['etc/passwd', 'opt/guest.cjs', 'opt/init.sh', 'stage.fstab', 'manifest.json']) {
      expect((await stat(join(image.dir, path))).mode & 0o777).toBe(0o444);
    }
    expect(await readFile(join(image.dir, 'opt/guest.cjs'), 'utf8')).toBe('guest 1');
  });

  it('is built once and adopted from then on; a new guest makes a new one, and the old one is `stale`', async () => {
    const first = await stageImage(options);
    expect(first.status).toMatchObject({ built: true, faults: [] });
    const second = await stageImage(options);
    expect(second).toEqual({ ...first, status: { ...first.status, built: false } });
    await writeFile(options.guestBundle, 'guest 2');
    const third = await stageImage(options);
    expect(third.digest).not.toBe(first.digest);
    expect(third.status.faults[0]?.why).toBe('stale');
    expect(await readFile(join(first.dir, 'opt/guest.cjs'), 'utf8')).toBe('guest 1');
  });

  it('carries a manifest: its source, and the digest of every part', async () => {
    const { dir: image, digest } = await stageImage(options);
    const manifest = JSON.parse(await readFile(join(image, 'manifest.json'), 'utf8'));
    expect(manifest.source).toBe(digest);
    const listed = Object.keys(manifest.parts);
    const files = (await readdir(image, { recursive: true })).filter((path) => path !== 'manifest.json');
    expect(listed.sort()).toEqual(files.sort());
  });

  it('names what is missing: the guest, or a Node that others may run', async () => {
    await expect(stageImage({ ...options, guestBundle: join(dir, 'none') })).rejects.toMatchObject({ code: 'component_missing' });
    const closed = join(dir, 'node');
    await writeFile(closed, '');
    await chmod(closed, 0o700);
    await expect(stageImage({ ...options, nodeBinary: closed })).rejects.toMatchObject({
      code: 'component_missing',
      hint: `chmod go+rx ${closed}`,
    });
  });

  const parts = ['opt/guest.cjs', 'opt/init.sh', 'opt/node', 'seccomp.bpf', 'stage.fstab', 'etc/passwd', 'etc/group'];
  const damages: Readonly<Record<string, (file: string) => Promise<void>>> = {
    missing: (file) => rm(file),
    'cut short': async (file) => ((await stat(file)).size === 0 ? writeFile(file, 'x') : truncate(file, (await stat(file)).size - 1)),
    'with one bit changed': async (file) => {
      const bytes = await readFile(file);
      await writeFile(file, bytes.length === 0 ? 'x' : Buffer.from([(bytes[0] ?? 0) ^ 1, ...bytes.subarray(1)]));
    },
    'a link': async (file) => {
      await cp(file, join(dir, 'same bytes'));
      await rm(file);
      await symlink(join(dir, 'same bytes'), file);
    },
  };
  it.each(parts.flatMap((part) => Object.keys(damages).map((how) => ({ part, how }))))(
    'finding 4, 5: $part $how is never adopted: another image is built, and the damaged one is not touched',
    async ({ part, how }) => {
      const first = await stageImage(options);
      if (how === 'a link') await damages[how]?.(join(first.dir, part));
      else await damage(first.dir, part, damages[how] ?? (async () => {}));
      expect((await checkImage(options)).faults).toEqual([{ part, why: how === 'missing' ? 'missing' : 'damaged' }]);
      const second = await stageImage(options);
      expect(second.dir).not.toBe(first.dir);
      expect(second.status).toMatchObject({ built: true, faults: [{ part }] });
      // Control: what was built instead passes the very same look.
      expect((await stageImage(options)).dir).toBe(second.dir);
    },
  );

  it.each([
    ['without a manifest', (image: string) => rm(join(image, 'manifest.json')), 'unlabelled'],
    ['with half a manifest', (image: string) => damage(image, 'manifest.json', (file) => writeFile(file, '{"schema":1')), 'unlabelled'],
    [
      'whose manifest names other sources',
      (image: string) =>
        damage(image, 'manifest.json', async (file) => {
          const manifest = JSON.parse(await readFile(file, 'utf8'));
          await writeFile(file, JSON.stringify({ ...manifest, source: 'other' }));
        }),
      'stale',
    ],
    ['whose parts the ids of a sandbox cannot read', (image: string) => chmod(join(image, 'opt'), 0o700), 'damaged'],
    ['with a file that nobody put there', (image: string) => writeFile(join(image, 'etc', 'ld.so.preload'), '/x'), 'damaged'],
  ] as const)('finding 4, 5: one %s is not adopted', async (_what, change, why) => {
    const first = await stageImage(options);
    await change(first.dir);
    const second = await stageImage(options);
    expect(second.dir).not.toBe(first.dir);
    expect(second.status.faults[0]?.why).toBe(why);
  });

  it('half of one, which a killed process has left, is never adopted, and goes', async () => {
    await mkdir(join(options.imagesDir, 'draft-abc', 'etc'), { recursive: true });
    const images = keepImage(options);
    expect(await images.renew({})).toMatchObject({ built: true, removed: 1 });
    expect(await readdir(options.imagesDir)).toHaveLength(1);
  });

  it('that cannot be built is `image_unusable`, with a hint; the next try succeeds', async () => {
    await writeFile(options.imagesDir, 'no directory');
    await expect(stageImage(options)).rejects.toMatchObject({ code: 'image_unusable', hint: expect.stringContaining('image build') });
    await rm(options.imagesDir);
    expect((await stageImage(options)).status.built).toBe(true);
  });
});

describe('the keeper of the image', () => {
  it('verifies once, not for every sandbox, and again once something speaks against it', async () => {
    const told: string[] = [];
    const log = { info: () => {}, warn: (_fields: object, message: string) => void told.push(message) };
    const images = keepImage({ ...options, log });
    const first = await images.use('a');
    await damage(first.dir, 'opt/guest.cjs', (file) => writeFile(file, 'other'));
    // Control: without a reason nothing is read again.
    expect((await images.use('b')).dir).toBe(first.dir);
    expect(told).toEqual([]);
    images.suspect();
    expect((await images.use('c')).dir).not.toBe(first.dir);
    expect(told).toEqual([expect.stringContaining('opt/guest.cjs damaged')]);
  });

  it('builds once for all who ask at the same time', async () => {
    const images = keepImage(options);
    const dirs = await Promise.all(['a', 'b', 'c'].map(async (generation) => (await images.use(generation)).dir));
    expect(new Set(dirs).size).toBe(1);
    expect(await readdir(options.imagesDir)).toHaveLength(1);
  });

  it('removes an old image with the last sandbox that uses it, not before', async () => {
    const images = keepImage(options);
    const old = await images.use('a');
    await images.use('b');
    const status = await images.renew({ force: true });
    expect(status).toMatchObject({ built: true, digest: old.digest, faults: [], removed: 0 });
    await images.release('a');
    expect(await readdir(options.imagesDir)).toHaveLength(2);
    await images.release('b');
    expect(await readdir(options.imagesDir)).toHaveLength(1);
    expect((await images.use('c')).dir).not.toBe(old.dir);
  });
});
