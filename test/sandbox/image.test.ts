import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stageImage } from '../../adapters/sandbox/bubblewrap/image.ts';

describe('the image of the bubblewrap engine', () => {
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

  it('BL-106 is readable by the ids of a sandbox although the kernel’s umask is 077', async () => {
    const image = await stageImage(options);
    for (const path of ['.', 'etc', 'opt']) expect((await stat(join(image.dir, path))).mode & 0o777).toBe(0o755);
    for (const path of ['etc/passwd', 'opt/guest.cjs', 'opt/init.sh', 'stage.fstab']) {
      expect((await stat(join(image.dir, path))).mode & 0o777).toBe(0o444);
    }
    expect(await readFile(join(image.dir, 'opt/guest.cjs'), 'utf8')).toBe('guest 1');
  });

  it('has one directory per content, and a new guest a new one', async () => {
    const [first, second] = await Promise.all([stageImage(options), stageImage(options)]);
    expect(second).toEqual(first);
    await writeFile(options.guestBundle, 'guest 2');
    const third = await stageImage(options);
    expect(third.digest).not.toBe(first.digest);
    expect(await readFile(join(first.dir, 'opt/guest.cjs'), 'utf8')).toBe('guest 1');
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
});
