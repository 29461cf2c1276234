import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runSetup } from '../../adapters/cli/commands/setup.ts';
import { Output } from '../../adapters/cli/output.ts';
import { machine } from '../../adapters/cli/setup/host.ts';
import { receiptFile } from '../../adapters/cli/setup/receipt.ts';
import { goStep, opaStep } from '../../adapters/cli/setup/steps.ts';
import { loadConfig } from '../../adapters/config.ts';
import { download } from '../../adapters/download.ts';
import { findOpa, OPA_VERSION } from '../../adapters/policy/opa.ts';
import { sha256Hex } from '../../core/json.ts';

const program = (version: string) => `#!/bin/sh\necho "Version: ${version}"\n`;
const GOOD = program(OPA_VERSION);

let dir: string;
let answer: (response: ServerResponse) => void;
let url: string;
const server = createServer((_request, response) => answer(response));

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'ow-download-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/opa`;
  gives(GOOD);
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(dir, { recursive: true });
});

const gives = (body: string) => {
  answer = (response) => response.end(body);
};

const env = () => ({ PATH: join(dir, 'bin'), HOME: dir });
const cache = () => join(dir, '.cache', 'outwork');

/** `setup` of OPA as the command does it, on a machine without Go whose configuration says where to fetch it. */
async function setup(sha256 = sha256Hex(GOOD)): Promise<{ code: number; steps: Record<string, unknown>[]; text: string }> {
  writeFileSync(join(dir, 'outwork.yaml'), `policy: {opa: {url: "${url}", sha256: "${sha256}"}}\n`);
  const { policy } = loadConfig({ env: env(), cwd: dir });
  // Nothing of this machine's own is on the PATH: its Go would build.
  const host = { ...machine(env()), env: env(), which: () => undefined };
  const written = { text: '' };
  const sink = {
    write: (text: string) => {
      written.text += text;
    },
  };
  const run = (json: boolean) => {
    const out = new Output({ json, stdout: sink, stderr: { write: () => {} }, env: {}, reader: { gone: false } });
    return runSetup({ out } as Parameters<typeof runSetup>[0], [goStep(policy.opa), opaStep(policy.opa)], host, false);
  };
  const code = await run(true);
  const { steps } = JSON.parse(written.text) as { steps: Record<string, unknown>[] };
  return { code, steps, text: written.text };
}

/** What lies in the cache, drafts included. */
const left = (): string[] => (existsSync(cache()) ? readdirSync(cache()) : []);

describe('finding 14: an installer is fetched into a file, its digest checked, and it is run and moved into place only then', () => {
  it('installs what has the digest and says the version, and writes it into the receipt; a second time nothing is fetched', async () => {
    const { code, steps } = await setup();
    expect({ code, steps }).toMatchObject({
      code: 0,
      steps: [
        { id: 'go', state: 'present' },
        { id: 'opa', state: 'done' },
      ],
    });
    expect(await findOpa({ env: env() })).toBe(join(cache(), `opa-${OPA_VERSION}`, 'opa'));
    expect(left()).toEqual([`opa-${OPA_VERSION}`]);
    expect(readFileSync(receiptFile(env()), 'utf8')).toContain(`opa-${OPA_VERSION}`);
    answer = () => {
      throw new Error('asked again');
    };
    expect((await setup()).steps[1]).toMatchObject({ state: 'present' });
  });

  const failures: Readonly<Record<string, { answer: (response: ServerResponse) => void; sha256?: string; code: string }>> = {
    'an address that gives nothing': { answer: (response) => response.writeHead(404).end('not here'), code: 'download_failed' },
    'a server that fails': { answer: (response) => response.writeHead(500).end(GOOD), code: 'download_failed' },
    'a connection that is cut': { answer: (response) => response.socket?.destroy(), code: 'download_failed' },
    'a body that ends early': {
      answer: (response) => {
        response.writeHead(200, { 'content-length': GOOD.length });
        response.write(GOOD.slice(0, 10), () => response.socket?.destroy());
      },
      code: 'download_failed',
    },
    'a body in pieces that ends early': {
      answer: (response) => {
        response.writeHead(200, { 'transfer-encoding': 'chunked' });
        response.write(GOOD.slice(0, 10), () => response.socket?.destroy());
      },
      code: 'download_failed',
    },
    'an empty body': { answer: (response) => response.end(), code: 'digest_mismatch' },
    'other bytes': { answer: (response) => response.end(`${GOOD}# and more\n`), code: 'digest_mismatch' },
    'a program that does not run': {
      answer: (response) => response.end('not a program'),
      sha256: sha256Hex('not a program'),
      code: 'policy_tool_missing',
    },
    'a program that fails': {
      answer: (response) => response.end('#!/bin/sh\nexit 1\n'),
      sha256: sha256Hex('#!/bin/sh\nexit 1\n'),
      code: 'policy_tool_missing',
    },
    'an older version': {
      answer: (response) => response.end(program('1.0.0')),
      sha256: sha256Hex(program('1.0.0')),
      code: 'policy_tool_missing',
    },
  };

  it.each(Object.keys(failures))('%s fails with a code and a hint and leaves nothing; the next try succeeds', async (name) => {
    const failure = failures[name];
    if (failure === undefined) throw new Error(name);
    answer = failure.answer;
    const { code, steps } = await setup(failure.sha256);
    expect(code).toBe(3);
    expect(steps[1]).toMatchObject({ id: 'opa', state: 'failed', code: failure.code, hint: expect.any(String) });
    expect(left()).toEqual([]);
    expect(existsSync(receiptFile(env()))).toBe(false);
    gives(GOOD);
    expect((await setup()).code).toBe(0);
  });

  it('what has another digest is never run (control: with its own digest it is)', async () => {
    const tattler = `#!/bin/sh\necho ran > ${join(dir, 'ran')}\n`;
    gives(tattler);
    expect((await setup()).steps[1]).toMatchObject({ code: 'digest_mismatch' });
    expect(existsSync(join(dir, 'ran'))).toBe(false);
    await setup(sha256Hex(tattler));
    expect(existsSync(join(dir, 'ran'))).toBe(true);
  });

  it('a half installation of before is replaced, not believed', async () => {
    mkdirSync(join(cache(), `opa-${OPA_VERSION}`), { recursive: true });
    writeFileSync(join(cache(), `opa-${OPA_VERSION}`, 'opa'), '#!/bin/sh\n', { mode: 0o755 });
    expect((await setup()).code).toBe(0);
    expect(left()).toEqual([`opa-${OPA_VERSION}`]);
  });

  it('a build that fails falls back to the download; a build of another version is not installed', async () => {
    mkdirSync(join(dir, 'bin'));
    const go = join(dir, 'bin', 'go');
    writeFileSync(go, `#!/bin/sh\nprintf '%s' '${program('1.0.0')}' > "$GOBIN/opa"\n/bin/chmod 755 "$GOBIN/opa"\n`);
    chmodSync(go, 0o755);
    expect((await setup()).code).toBe(0);
    expect(readFileSync(await findOpa({ env: env() }), 'utf8')).toBe(GOOD);
  });

  it('a server that never ends is given up', async () => {
    answer = (response) => void response.write('x');
    const file = join(dir, 'file');
    await expect(download({ url, sha256: sha256Hex(GOOD) }, file, 200)).rejects.toMatchObject({ code: 'download_failed' });
    expect(existsSync(file)).toBe(false);
  });

  it('never writes over a file, or through a link, that is there', async () => {
    const file = join(dir, 'file');
    writeFileSync(file, 'mine');
    await expect(download({ url, sha256: sha256Hex(GOOD) }, file)).rejects.toMatchObject({ code: 'EEXIST' });
    const link = join(dir, 'link');
    symlinkSync(join(dir, 'elsewhere'), link);
    await expect(download({ url, sha256: sha256Hex(GOOD) }, link)).rejects.toMatchObject({ code: 'EEXIST' });
    expect([readFileSync(file, 'utf8'), existsSync(join(dir, 'elsewhere'))]).toEqual(['mine', false]);
  });

  it('no address without a digest, and no other scheme, gets into the configuration', () => {
    const load = (opa: string) => {
      writeFileSync(join(dir, 'outwork.yaml'), `policy: {opa: ${opa}}\n`);
      return loadConfig({ env: env(), cwd: dir });
    };
    expect(() => load(`{url: "${url}"}`)).toThrow(/policy.opa.sha256/);
    expect(() => load(`{url: "${url}", sha256: abc}`)).toThrow(/policy.opa.sha256/);
    expect(() => load(`{url: "file:///opa", sha256: ${'a'.repeat(64)}}`)).toThrow(/policy.opa.url/);
  });
});
