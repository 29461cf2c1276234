import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clampOutput } from '../../../core/capability/floor.ts';
import type { CommandOutcome } from '../../../core/capability/types.ts';
import { neutralText } from '../../../core/leak/controls.ts';
import type { ToolCommand } from '../../../core/ports/placement.ts';
import { OutputCapture } from '../../../harnesses/guest/capture.ts';
import { outputLimit } from '../../../harnesses/guest/output-limit.ts';
import { cutSequence, sequenceEnd } from '../../../harnesses/guest/sequences.ts';
import { execIn, type GuestProcess, startGuest } from '../../support/guest-process.ts';

let guest: GuestProcess;
beforeAll(async () => {
  guest = await startGuest();
});
afterAll(async () => {
  expect(guest.membrane.faults).toEqual([]);
  await guest[Symbol.asyncDispose]();
});

const sh = (script: string, more: Partial<ToolCommand> = {}): Promise<CommandOutcome> =>
  execIn(guest, { argv: ['/bin/sh', '-c', script], ...more });

describe('the limit of a copy of output', () => {
  it('finding 6: guest and kernel clamp alike', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (bytes) => outputLimit(bytes) === clampOutput(bytes)));
    expect([1, 1023, 1024, 1025, 1048576, 1048577].map((bytes) => outputLimit(bytes))).toEqual([1024, 1024, 1024, 1025, 1048576, 1048576]);
  });
});

describe('saved copies', () => {
  it('OUT are whole up to their own limit, byte for byte, whatever the captured limit is', async () => {
    const outcome = await sh('seq 1 20000; echo problem >&2; exit 2', { outputBytes: 1024, save: { path: 'logs/out.txt' } });
    expect(outcome).toMatchObject({ exitCode: 2, truncated: true });
    expect(Buffer.byteLength(outcome.stdout)).toBeLessThanOrEqual(1024);
    const whole = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
    expect(readFileSync(join(guest.workspace, 'logs/out.txt'), 'utf8')).toBe(whole);
    expect(readFileSync(join(guest.workspace, 'logs/out.txt.stderr'), 'utf8')).toBe('problem\n');
    expect(statSync(join(guest.workspace, 'logs/out.txt')).uid).toBe(guest.toolUid);
    expect(outcome.saved).toEqual([
      { stream: 'stdout', path: 'logs/out.txt', bytes: whole.length, truncated: false },
      { stream: 'stderr', path: 'logs/out.txt.stderr', bytes: 8, truncated: false },
    ]);
  });

  it('OUT hold their limit, the marker included', async () => {
    const outcome = await sh('seq 1 20000', { save: { path: 'small.txt', bytes: 2000 } });
    const saved = readFileSync(join(guest.workspace, 'small.txt'));
    expect(saved.length).toBeLessThanOrEqual(2000);
    expect(saved.toString()).toMatch(/^1\n2\n[\s\S]*bytes left out[\s\S]*20000\n$/);
    expect(outcome.saved).toEqual([{ stream: 'stdout', path: 'small.txt', bytes: saved.length, truncated: true }]);
  });

  it('OUT keep bytes that are no text', async () => {
    const outcome = await sh('head -c 900000 /dev/urandom | tee copy.bin', { save: { path: 'saved.bin' } });
    expect(outcome).toMatchObject({ exitCode: 0, binary: ['stdout'], stdout: '[binary data: 900000 bytes]\n' });
    expect(readFileSync(join(guest.workspace, 'saved.bin')).equals(readFileSync(join(guest.workspace, 'copy.bin')))).toBe(true);
  });

  it('BL-100 a path that leads out is refused before anything runs, and a link after that writes nowhere', async () => {
    for (const path of ['../out.txt', '/tmp/out.txt', 'a/../../b', '']) {
      await expect(sh('touch ran', { save: { path } })).rejects.toMatchObject({ code: expect.stringMatching(/path_outside|invalid/) });
    }
    expect(existsSync(join(guest.workspace, 'ran'))).toBe(false);
    const outside = join(guest.dir, 'outside');
    mkdirSync(outside, { mode: 0o777 });
    symlinkSync(outside, join(guest.workspace, 'leads-out'));
    const outcome = await sh('echo x', { save: { path: 'leads-out/file' } });
    expect(outcome).toMatchObject({ exitCode: 0, stdout: 'x\n', saved: [], stderr: expect.stringContaining('path_outside_workspace') });
    expect(existsSync(join(outside, 'file'))).toBe(false);
  });
});

describe('what is no text', () => {
  it('is described, and text with a few odd bytes is not taken for it', async () => {
    expect(await sh('cat /bin/true')).toMatchObject({ binary: ['stdout'], truncated: true });
    for (const script of [
      'printf "a\\0b"',
      'printf "caf\\351 is latin one and goes on for quite a while, as it should, to be long enough"',
      'printf "\\033[1mbold\\033[0m %.0s" $(seq 40)',
      'find . -maxdepth 1 -name "lo*" -print0',
    ]) {
      expect(await sh(script)).not.toHaveProperty('binary');
    }
  });
});

describe('progress of a command that lasts', () => {
  it('tells sizes and the newest text, and of a short command nothing', async () => {
    const before = guest.membrane.requestsOf('control.reply').length;
    await sh('echo short');
    expect(guest.membrane.requestsOf('control.reply').slice(before)).toHaveLength(1);
    const seen = guest.membrane.progressed();
    const long = guest.membrane.exec('run_1', { argv: ['/bin/sh', '-c', 'i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.05; done'] });
    const progress = await seen;
    expect(progress).toMatchObject({ stderrBytes: 0, tail: expect.stringMatching(/step \d+\n$/) });
    guest.membrane.send({ type: 'exec.cancel', id: long.id });
    expect((await long).exec).toMatchObject({ signal: 'SIGKILL' });
  });
});

describe('escape sequences at a cut', () => {
  const sequence = fc.constantFrom(
    '\x1b[0m',
    '\x1b[38;5;12m',
    '\x1b]0;a title\x07',
    '\x1b]8;;http://x/y\x1b\\',
    `\x1b]8;;http://x/${'y'.repeat(700)}\x07`,
    `\x1b]52;c;${'QUJD'.repeat(600)}\x1b\\`,
    '\u009b38;5;12m',
    '\u009d0;a title\u009c',
    '\u0090q#1\u009c',
    '\x1bPq#1\x1b\\',
    '\x1b(B',
    '\x1bM',
    '\x1b7',
  );
  const stream = fc.array(fc.oneof(sequence, fc.constantFrom('text', 'ä', 'ě', '─', '😀', '\n', 'x'.repeat(30))), {
    minLength: 5,
    maxLength: 300,
  });

  it('OUT are never broken, whatever the stream, its pieces and its limit', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 100, max: 900 }), fc.array(fc.nat(), { maxLength: 8 }), (parts, limit, cuts) => {
        const bytes = Buffer.from(parts.join(''));
        const capture = new OutputCapture(limit);
        const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        for (const [i, start] of [0, ...at].entries()) capture.push(bytes.subarray(start, at[i] ?? bytes.length));
        const { text, truncated } = capture.render();
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limit);
        expect(
          neutralText(text)
            .replace(/\n\[….*…\]\n/, '')
            .replace(/text|ä|ě|─|😀|x|\n/g, ''),
        ).toMatch(truncated ? /^[tex]{0,6}$/ : /^$/);
      }),
    );
  });

  it('OUT one that never began or never ends hides no text but its own', () => {
    const capture = new OutputCapture(400);
    capture.push(Buffer.from(`\x1b[\n${'a'.repeat(5000)}\x1b${'b'.repeat(150)}`));
    const shown = capture.render().text.replaceAll('\x1b', '^');
    expect(shown).toMatch(/^\^\[\na{100,}\n\[…[^\]]*…\]\na*\^b{150}$/);
  });

  it('(control) a cut at any byte does break some', () => {
    const bytes = Buffer.from('\x1b[38;5;12mred');
    expect(cutSequence(bytes, 6)).toBe(0);
    expect(sequenceEnd(bytes, 6)).toBe(10);
    expect(neutralText(bytes.subarray(6).toString())).toContain('12m');
  });
});
