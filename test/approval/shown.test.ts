import { describe, expect, it } from 'vitest';
import { shownOf, type ToShow } from '../../core/approval/shown.ts';
import type { Shown } from '../../core/approval/types.ts';
import { DESCRIPTORS } from '../../core/capability/descriptors.ts';
import type { CapabilityName } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';

const show = (name: CapabilityName, args: Json, change: Partial<ToShow> = {}) =>
  shownOf({
    scope: { tenant: 'acme', user: 'ada', thread: 'thr_1', run: 'run_1' },
    descriptor: DESCRIPTORS[name],
    args,
    ceiling: { startedBy: 'kernel', leases: [], hosts: [], outputBytes: 65_536, wallMs: 130_000 },
    files: [],
    fileTexts: [],
    reasons: [{ code: 'approval_required', message: 'shell.exec needs an approval.' }],
    codeInArgument: false,
    secrets: [],
    ...change,
  });
const page = (...given: Parameters<typeof show>): Shown => {
  const shown = show(...given);
  if ('code' in shown) throw new Error(shown.code);
  return shown;
};
const kinds = ({ warnings }: Shown) => warnings.map(({ kind }) => kind);

describe('what an approver is shown', () => {
  it('is the whole command, word by word, and what it may use at the most', () => {
    const { text, warnings } = page('shell.exec', { argv: ['git', 'push', 'origin  main'], cwd: 'repo', env: { LANG: 'C' }, timeoutMs: 5 });
    expect(text.split('\n')).toEqual([
      'shell.exec for ada of acme',
      'Why: shell.exec needs an approval.',
      'Command: "git" "push" "origin  main"',
      'Directory: "repo"',
      'Variable LANG: "C"',
      'timeoutMs: "5"',
      'May use: no credential, no host outside its sandbox, 130 s, 65536 bytes of each output; the kernel starts exactly this.',
      'No file is pinned: what the command reads in the workspace may change before it runs.',
    ]);
    expect(warnings).toEqual([]);
  });

  it('says when the arguments are the executor’s own word, and that the ceiling is what counts', () => {
    const ceiling = {
      startedBy: 'executor',
      leases: [{ recipe: 'gh', operations: ['pr.read'] }],
      hosts: ['api.example'],
      outputBytes: 1,
      wallMs: 1,
    } as const;
    const shown = page('shell.exec', { argv: ['gh', 'pr', 'list'] }, { ceiling });
    expect(shown.text).toContain('credentials gh (pr.read), the hosts api.example');
    expect(kinds(shown)).toEqual(['arguments_are_claimed']);
  });

  it('warns of what hides in words, variables, names of files and in the files themselves', () => {
    const file = { argument: 1, path: 'dep\u200bloy.sh', sha256: '0'.repeat(64), size: 1 };
    const shown = page(
      'shell.exec',
      { argv: ['sh', 'dep\u200bloy.sh', 'c\u0443rl'], env: { LD_PRELOAD: 'x.so', A: '\u001b[8m' } },
      { files: [file], fileTexts: ['if (user \u202e) // admin'], codeInArgument: true },
    );
    expect(kinds(shown).sort()).toEqual([
      ...['bidi_control', 'code_in_argument', 'control_character', 'environment_loads_code', 'invisible', 'mixed_scripts'],
    ]);
    for (const hidden of ['\u202e', '\u200b', '\u001b']) expect(shown.text).not.toContain(hidden);
    expect(shown.text).toContain(`Pinned: "dep\\u{200b}loy.sh", 1 bytes, sha256 ${'0'.repeat(64)}`);
  });

  it('warns of a variable that loads code, however the command sets it', () => {
    expect(kinds(page('shell.exec', { argv: ['env', 'LD_PRELOAD=./x.so', 'sh', 'x.sh'] }))).toEqual(['environment_loads_code']);
    expect(kinds(page('shell.exec', { argv: ['env', 'A=LD_PRELOAD=x', 'LANG=C', 'sh', 'x.sh'] }))).toEqual([]);
  });

  it('shows the beginning of content that is long, and what all of it is', () => {
    const body = `start ${'x'.repeat(20_000)} end`;
    const shown = page('message.post', { body });
    expect(shown.text).toMatch(/body: "start x+" … 20010 bytes in all, sha256 [0-9a-f]{64}/);
    expect(kinds(shown)).toEqual(['cut']);
    expect(page('message.post', { body: body.replace('end', 'END') }).text).not.toBe(shown.text);
  });

  it('refuses to show a command that nobody can read whole', () => {
    expect(show('shell.exec', { argv: ['sh', '-c', 'x'.repeat(20_000)] })).toMatchObject({ code: 'approval_too_long' });
    expect(show('shell.exec', { argv: Array(250).fill('x'.repeat(100)) })).toMatchObject({ code: 'approval_too_long' });
    expect(show('shell.exec', { argv: ['sh', '-c', 'x'.repeat(15_000)] })).toHaveProperty('text');
  });

  it('holds no live secret', () => {
    const secrets = ['ghp_0123456789abcdef0123456789abcdef0123'];
    const args = { argv: ['echo', secrets[0] ?? ''], env: { T: secrets[0] ?? '' }, stdin: `a ${secrets[0]}` };
    expect(page('shell.exec', args, { secrets }).text).not.toContain('ghp_');
    // Control: without the secret being live the same text is shown.
    expect(page('shell.exec', args).text).toContain('ghp_');
  });

  it('is one text for one question', () => {
    expect(page('fs.write', { path: 'a', body: 'b' })).toEqual(page('fs.write', { path: 'a', body: 'b' }));
  });
});
