import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INIT_SCRIPT, imagesDirOf } from '../../adapters/sandbox/bubblewrap/engine.ts';
import { stageImage } from '../../adapters/sandbox/bubblewrap/image-store.ts';
import { ensureGuest } from '../../harnesses/guest/bundle.ts';
import { SHIPPED } from '../policy/support/policy-dir.ts';
import { CliWorld } from './cli-world.ts';

interface Report {
  readonly ok: boolean;
  readonly checks: readonly { readonly id: string; readonly ok: boolean; readonly required: boolean; readonly fix?: string }[];
}

let world: CliWorld;
beforeEach(() => {
  world = new CliWorld();
  // No OPA on this PATH, and none in this HOME.
  world.env.PATH = '/usr/bin:/bin';
});
afterEach(() => world[Symbol.dispose]());

const doctor = async () => {
  const { code, document } = await world.json('doctor');
  return { code, report: document as Report, failed: (document as Report).checks.filter(({ ok }) => !ok) };
};

describe('doctor', () => {
  it('finds this machine good; that OPA is absent is said and does no harm', async () => {
    const { code, report, failed } = await doctor();
    expect(failed).toEqual([expect.objectContaining({ id: 'opa', required: false, fix: 'outwork setup --full' })]);
    expect({ code, ok: report.ok }).toEqual({ code: 0, ok: true });
    const text = await world.run('doctor');
    expect(text.stdout).toMatch(/^opa +absent /m);
  });

  it('is exit 3 when OUTWORK_REQUIRE names what is absent, and says what mends it', async () => {
    world.env.OUTWORK_REQUIRE = 'bubblewrap,opa';
    const { code, report, failed } = await doctor();
    expect({ code, ok: report.ok }).toEqual({ code: 3, ok: false });
    expect(failed).toEqual([expect.objectContaining({ id: 'opa', required: true })]);
    const text = await world.run('doctor');
    expect(text.code).toBe(3);
    expect(text.stdout).toMatch(/^opa +MISSING /m);
    expect(text.stdout).toContain('opa: outwork setup --full');
  });

  it('says that rules allow more than the shipped ones, which is no reason not to run', async () => {
    const rules = join(world.dir, 'rules');
    cpSync(SHIPPED, rules, { recursive: true });
    writeFileSync(join(world.dir, 'outwork.yaml'), 'policy: {dir: rules}\n');
    expect((await doctor()).failed.map(({ id }) => id)).toEqual(['opa']);
    const file = join(rules, 'data', 'call.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('message.post: [executor]', 'message.post: [executor, operator]'));
    const { code, failed } = await doctor();
    expect(code).toBe(0);
    expect(failed).toContainEqual(expect.objectContaining({ id: 'rules.shipped', required: false, fix: 'outwork policy status' }));
    expect((await world.run('doctor')).stdout).toMatch(/^rules\.shipped +WARNING +allow more than the shipped ones: \d+ answers/m);
  });

  it('a component that does not exist is a usage error, not a pass', async () => {
    world.env.OUTWORK_REQUIRE = 'bubblewarp';
    expect(await world.json('doctor')).toMatchObject({ code: 2, document: { error: { code: 'invalid_argument' } } });
  });

  it('is exit 3 for rules that are not there and a state directory that is open', async () => {
    writeFileSync(join(world.dir, 'outwork.yaml'), 'policy: {dir: none}\nstateDir: open\n');
    mkdirSync(join(world.dir, 'open'), { mode: 0o755 });
    const { code, failed } = await doctor();
    expect(code).toBe(3);
    expect(failed.map(({ id }) => id)).toEqual(['policy', 'state', 'opa']);
  });

  it('BL-108 tells of a file system without the room that it has to keep, also before the state directory is there', async () => {
    const disk = async () => (await doctor()).report.checks.find(({ id }) => id === 'disk');
    writeFileSync(join(world.dir, 'outwork.yaml'), 'stateDir: not/there/yet\nlimits: {diskReserveMiB: 0}\n');
    expect(await disk()).toMatchObject({
      ok: true,
      detail: expect.stringMatching(/^\d+ MiB and \d+ % of its inodes free, 0 MiB are kept$/),
    });
    writeFileSync(join(world.dir, 'outwork.yaml'), 'stateDir: not/there/yet\nlimits: {diskReserveMiB: 1000000000}\n');
    expect(await disk()).toMatchObject({ ok: false, required: true, fix: expect.stringContaining('free space') });
  });

  it('finding 4, 5: looks at every part of the image, and builds none', async () => {
    const stateDir = join(world.dir, 'own');
    mkdirSync(stateDir, { mode: 0o700 });
    writeFileSync(join(world.dir, 'outwork.yaml'), 'stateDir: own\n');
    const image = async () => (await doctor()).report.checks.find(({ id }) => id === 'image');
    expect(await image()).toMatchObject({ ok: true, detail: expect.stringContaining('not built yet') });
    const { file } = await ensureGuest();
    const imagesDir = imagesDirOf(stateDir);
    const { dir } = await stageImage({ imagesDir, guestBundle: file, initScript: INIT_SCRIPT, nodeBinary: process.execPath });
    expect(await image()).toMatchObject({ ok: true, detail: expect.stringContaining('every part is as built') });
    rmSync(join(dir, 'etc', 'group'));
    expect(await image()).toMatchObject({ ok: false, required: false, fix: 'outwork sandbox image build' });
    expect((await world.run('doctor')).stdout).toMatch(/^image +WARNING +not as it was built: etc\/group missing/m);
    for (const name of ['hosts', 'shells', 'hostname', 'passwd']) rmSync(join(dir, 'etc', name));
    expect(await image()).toMatchObject({
      detail: expect.stringMatching(/built: (etc\/\w+ missing, ){3}…; the next start builds it again$/),
    });
    expect(readdirSync(imagesDir)).toHaveLength(1);
  });

  it('makes nothing', async () => {
    await doctor();
    expect(() => world.kernel).toThrow();
  });
});
