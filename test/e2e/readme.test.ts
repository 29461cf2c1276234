import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigLine } from '../../adapters/config.ts';
import type { Run } from '../../core/run/types.ts';
import { LAUNCHER } from '../support/launcher.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-readme-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a command line as a person would type it, from a directory of its own. */
function type(line: string): { status: number | null; stdout: string; stderr: string } {
  const typed = line.replace(/^npm run outwork --/, `"${process.execPath}" "${LAUNCHER}"`);
  const env = { PATH: process.env.PATH ?? '', HOME: dir, XDG_STATE_HOME: join(dir, 's') };
  return spawnSync('/bin/sh', ['-c', typed], { cwd: dir, env, encoding: 'utf8' });
}

/** The fenced block after a heading. */
function block(heading: string): string {
  const [, text] = new RegExp(`^## ${heading}$[\\s\\S]*?^\`\`\`\\w*\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(README) ?? [];
  if (text === undefined) throw new Error(`README has no block below "${heading}"`);
  return text;
}

describe('README', () => {
  it('every line of "Run a turn" does what it says, in this order', () => {
    const lines = block('Run a turn').trim().split('\n');
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      const { status, stderr } = type(line);
      expect(status, `${line}\n${stderr}`).toBe(0);
    }
    expect(type(lines[1] ?? '').stdout.trim()).not.toBe('');
  });

  it('the example of "Switch the placement" is a configuration that says what the text says', () => {
    writeFileSync(join(dir, 'outwork.yaml'), block('Switch the placement'));
    const { status, stdout } = type('npm run outwork -- config show --json');
    expect(status).toBe(0);
    const text = JSON.stringify(JSON.parse(stdout) as readonly ConfigLine[]);
    for (const value of ['persistent-per-user', 'disposable-per-run', 'tenants.acme.users.ann.placement']) expect(text).toContain(value);
  });

  it('profile production refuses every run, and development does not', () => {
    expect(type('npm run outwork -- user add ann').status).toBe(0);
    for (const placement of ['host-loop-shell', 'disposable-per-run', 'persistent-per-user']) {
      writeFileSync(join(dir, 'outwork.yaml'), 'profile: production\n');
      const refused = type(`npm run outwork -- run --user ann --placement ${placement} hi --json`);
      expect({ status: refused.status, run: (JSON.parse(refused.stdout) as { run: Run }).run.failure }).toEqual({
        status: 4,
        run: 'placement_not_reviewed',
      });
      writeFileSync(join(dir, 'outwork.yaml'), 'profile: development\n');
      expect(type(`npm run outwork -- run --user ann --placement ${placement} hi --json`).status).toBe(0);
    }
  });
});
