import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findOpa, installOpa, OPA_VERSION } from '../../adapters/policy/opa.ts';
import { temporaryDir } from './support/policy-dir.ts';

async function script(path: string, body: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

const opaOf = (version: string): string => `echo "Version: ${version}"`;

describe('the one OPA', () => {
  test('is taken from PATH', async () => {
    const dir = await temporaryDir();
    const opa = await script(join(dir, 'bin', 'opa'), opaOf(OPA_VERSION));
    expect(await findOpa({ env: { PATH: join(dir, 'bin'), HOME: dir } })).toBe(opa);
  });

  test('another version on PATH is passed over for the cache', async () => {
    const dir = await temporaryDir();
    await script(join(dir, 'bin', 'opa'), opaOf('1.0.0'));
    const cached = await script(join(dir, 'cache', 'outwork', `opa-${OPA_VERSION}`, 'opa'), opaOf(OPA_VERSION));
    expect(await findOpa({ env: { PATH: join(dir, 'bin'), XDG_CACHE_HOME: join(dir, 'cache') } })).toBe(cached);
  });

  test('missing, it is a named prerequisite with a command', async () => {
    const dir = await temporaryDir();
    await script(join(dir, 'bin', 'opa'), opaOf('1.0.0'));
    await expect(findOpa({ env: { PATH: join(dir, 'bin'), HOME: dir } })).rejects.toMatchObject({
      code: 'policy_tool_missing',
      hint: 'outwork setup --full',
    });
  });

  test('is built once by the Go toolchain, and not again', async () => {
    const dir = await temporaryDir();
    await script(
      join(dir, 'bin', 'go'),
      `echo "$@" >> ${dir}/calls\nprintf '#!/bin/sh\\n${opaOf(OPA_VERSION)}\\n' > "$GOBIN/opa"\n/bin/chmod 755 "$GOBIN/opa"`,
    );
    const env = { PATH: join(dir, 'bin'), HOME: dir };
    const lines: string[] = [];
    const path = await installOpa((line) => lines.push(line), { env });
    expect(path).toBe(join(dir, '.cache', 'outwork', `opa-${OPA_VERSION}`, 'opa'));
    await script(join(dir, 'bin', 'go'), 'exit 1');
    expect(await installOpa((line) => lines.push(line), { env })).toBe(path);
    expect(lines.length).toBeGreaterThan(1);
  });

  test('without a Go toolchain, or when the build fails, the command is named', async () => {
    const dir = await temporaryDir();
    const env = { PATH: join(dir, 'bin'), HOME: dir };
    const missing = { code: 'policy_tool_missing', hint: expect.stringContaining('go install') };
    await expect(installOpa(() => undefined, { env })).rejects.toMatchObject(missing);
    await script(join(dir, 'bin', 'go'), 'echo broken >&2; exit 1');
    await expect(installOpa(() => undefined, { env })).rejects.toMatchObject(missing);
  });
});
