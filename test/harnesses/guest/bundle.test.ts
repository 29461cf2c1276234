import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { buildGuest, ensureGuest } from '../../../harnesses/guest/bundle.ts';

const dir = mkdtempSync(join(tmpdir(), 'bundle-'));
afterAll(() => rmSync(dir, { recursive: true }));

describe('the guest bundle', () => {
  it('is one CommonJS file of at most 50 KB that loads no heavy built-in at its start, and builds the same every time', async () => {
    const one = await buildGuest({ outFile: join(dir, 'one.cjs') });
    const two = await buildGuest({ outFile: join(dir, 'two.cjs') });
    expect(one.bytes).toBeLessThanOrEqual(50 * 1024);
    expect(two.sha256).toBe(one.sha256);
    const code = readFileSync(one.file, 'utf8');
    const needed = [...code.matchAll(/require\(\s*[`'"]([^`'"]+)[`'"]\s*\)/g)].map(([, name]) => name);
    // Network, processes and digests are loaded when they are needed, by process.getBuiltinModule.
    expect([...new Set(needed)].sort()).toEqual(['node:fs', 'node:path']);
    expect(statSync(one.file).mode & 0o777).toBe(0o644);
  });

  it('is built once for the same sources', async () => {
    const first = await ensureGuest();
    const modified = statSync(first.file).mtimeMs;
    expect(await ensureGuest()).toEqual(first);
    expect(statSync(first.file).mtimeMs).toBe(modified);
  });
});
