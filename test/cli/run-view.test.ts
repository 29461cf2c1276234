import { expect, it } from 'vitest';
import { Output } from '../../adapters/cli/output.ts';
import { lengthText, printRunView } from '../../adapters/cli/run-view.ts';
import { displayWidth } from '../../adapters/printable.ts';
import type { RunView } from '../../core/kernel.ts';
import { nextStep } from '../../core/run/next-step.ts';
import type { Run } from '../../core/run/types.ts';

const ID = '01m8kt3n65z1sks9gww1yr2k6t';
const NOW = 1_795_961_300_000;

const base: Run = {
  ...{ id: `run_${ID}`, tenant: 'acme', thread: `thr_${ID}`, actor: 'ann', origin: 'interactive', message: `msg_${ID}`, state: 'queued' },
  ...{ gate: undefined, fence: 0, reclaims: 0, leaseHolder: undefined, leaseUntilMs: undefined, deadlineMs: undefined },
  ...{
    placement: undefined,
    harness: undefined,
    cancelRequested: false,
    createdAtMs: NOW - 90_000,
    endedAtMs: undefined,
    failure: undefined,
  },
};

function shown(change: Partial<Run>, more: Partial<RunView> = {}, columns = 80): string {
  const run = { ...base, ...change };
  let text = '';
  const stdout = { write: (chunk: string) => (text += chunk), isTTY: true, columns };
  const out = new Output({ json: false, stdout, stderr: stdout, env: { NO_COLOR: '1' }, reader: { gone: false } });
  printRunView(
    out,
    { run, attempts: [], calls: [], decisions: [], lastEvent: undefined, next: nextStep(run, undefined, NOW), ...more },
    NOW,
  );
  return text;
}

const attempt = (fence: number, outcome?: string) =>
  ({
    run: base.id,
    fence,
    placement: 'host-loop-shell',
    engine: 'bubblewrap',
    sandbox: `sbx_${ID}`,
    holder: 'host:1:ab',
    startedAtMs: NOW - 60_000,
    endedAtMs: undefined,
    outcome,
  }) as const;
const call = (n: number, change = {}) =>
  ({
    ...{
      id: `cal_${ID}`,
      run: base.id,
      fence: 1,
      key: { step: n, call: 0 },
      capability: 'shell.exec',
      effectClass: 'once',
      argsDigest: 'a',
      state: 'done',
    },
    ...{
      outcome: undefined,
      summary: 'git push --force-with-lease origin a-branch-with-a-long-name',
      decision: `dec_${ID}`,
      permit: undefined,
      openedAtMs: 1,
      closedAtMs: 2,
    },
    ...change,
  }) as RunView['calls'][0];

it('a parked run: what a person has to do comes first, then its gate with the evidence', () => {
  const gate = { kind: 'unknown', ref: `cal_${ID}`, reason: 'It is not known whether this was carried out: shell.exec git push' } as const;
  const lastEvent = { cursor: 41, type: 'run.parked', atMs: NOW - 240_000, data: {} } as const;
  const text = shown(
    { state: 'parked', gate, fence: 1 },
    { lastEvent, attempts: [attempt(1, 'parked')], calls: [call(0, { state: 'unknown' })] },
  );
  expect(text).toMatch(/^run_\w+ {2}parked\nnext +a person says what became of cal_/);
  expect(text.replaceAll(/\s+/g, ' ')).toContain(`outwork runs resolve run_${ID} --as done|not-done|abort`);
  expect(text).toMatch(/^gate +unknown cal_\w+\n +It is not known/m);
  expect(text).toMatch(/^last event +run\.parked, 4 min ago \(cursor 41\)$/m);
});

it('a running run: who holds its lease and for how long; one whose holder is dead says since when', () => {
  const running = { state: 'running', fence: 2, leaseHolder: 'host:4626:55445f3c' } as const;
  expect(shown({ ...running, leaseUntilMs: NOW + 21_000 })).toMatch(/^lease +attempt 2 of host:4626:55445f3c, 21 s left$/m);
  expect(shown({ ...running, leaseUntilMs: NOW - 120_000 })).toMatch(/^lease .* over since 2 min$/m);
});

it('a failed run has its code on the first line, a cancelling one says that it was asked', () => {
  expect(shown({ state: 'failed', failure: 'harness_unknown', endedAtMs: NOW })).toMatch(/^run_\w+ {2}failed {2}harness_unknown\n/);
  expect(shown({ state: 'cancelling', cancelRequested: true })).toMatch(/^cancel +was asked for$/m);
});

it.each([
  ['thread', 'holds its thread'],
  ['order', 'an older message of its thread'],
  ['user', 'as many runs at work as config allows'],
] as const)('a queued run says what it waits for: %s', (why, words) => {
  const run = { ...base, id: 'run_other', state: 'running' } as const;
  expect(nextStep(base, { why, run }, NOW)).toContain(words);
  expect(nextStep(base, { why, run }, NOW)).toContain('run_other');
  expect(nextStep(base, undefined, NOW)).toContain('a kernel');
});

it.each([80, 60, 100])('no line is wider than a terminal of %i columns, ids stay whole', (columns) => {
  const gate = { kind: 'unknown', ref: `cal_${ID}`, reason: 'long '.repeat(60) } as const;
  const calls = Array.from({ length: 12 }, (_, n) => call(n));
  const text = shown({ state: 'parked', gate, fence: 2 }, { calls, attempts: [attempt(1, 'lost'), attempt(2, 'parked')] }, columns);
  expect(text.split('\n').filter((line) => displayWidth(line) > columns)).toEqual([]);
  expect(text).toContain(`thr_${ID}`);
});

it('lengths of time are told in their largest unit', () => {
  expect([999, 1000, 61_000, 7_200_000, 90_000_000].map(lengthText)).toEqual(['999 ms', '1 s', '1 min', '2 h', '1 d']);
});
