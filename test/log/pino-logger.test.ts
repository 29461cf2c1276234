import { expect, it } from 'vitest';
import { logEvent } from '../../adapters/log/log-event.ts';
import { pinoLogger } from '../../adapters/log/pino-logger.ts';

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[\\d{1,2}m`, 'g');
const TOKEN = `owt_${'A'.repeat(43)}`;

function logger(pretty: boolean, level: 'debug' | 'info' | 'silent' = 'info') {
  const written: string[] = [];
  const log = pinoLogger({ level, pretty, write: (text) => written.push(text) });
  return { log, text: () => written.join(''), lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

it('each line is one JSON document with the ids of what it is about', () => {
  const { log, lines } = logger(false);
  logEvent(log, {
    ...{ type: 'call.dispatched', cursor: 7, atMs: 1000, tenant: 'acme', thread: 'thr_1', run: 'run_1' },
    data: { capability: 'shell.exec', permit: 'prm_1', decision: 'dec_1', step: 2 },
  });
  expect(lines()).toEqual([
    {
      ...{ level: 'info', time: expect.any(Number), event: 'call.dispatched', cursor: 7, at_ms: 1000, msg: 'call.dispatched' },
      ...{ tenant: 'acme', thread: 'thr_1', run: 'run_1', permit: 'prm_1', decision: 'dec_1' },
      data: { capability: 'shell.exec', step: 2 },
    },
  ]);
});

it('what went wrong is a warning, talk of an executor is for who debugs', () => {
  const { log, lines } = logger(false);
  for (const type of ['run.failed', 'call.denied', 'membrane.refused', 'run.completed', 'run.progress'] as const)
    logEvent(log, { type, cursor: 1, atMs: 1, data: {} });
  expect(lines().map(({ level, msg }) => `${level} ${msg}`)).toEqual([
    'warn run.failed',
    'warn call.denied',
    'warn membrane.refused',
    'info run.completed',
  ]);
});

it('an error comes with its stack, and with its cause', () => {
  const { log, lines } = logger(false);
  log.error({ run: 'run_1', err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
  expect(lines()[0]).toMatchObject({
    level: 'error',
    run: 'run_1',
    err: { message: expect.stringContaining('inner'), stack: expect.any(String) },
  });
});

it.each([false, true])('secrets are replaced wherever they stand (pretty: %s)', (pretty) => {
  const { log, text } = logger(pretty);
  log.info({ token: 'plain-secret-1', deep: { authorization: 'plain-secret-2', deeper: { password: 'plain-secret-3' } } }, 'fields');
  log.info({ note: `it said ${TOKEN}`, header: 'Authorization: Bearer abcdefgh12345678' }, `token ${TOKEN}`);
  log.error({ err: new Error(`refused ${TOKEN}`) }, 'error');
  expect(text()).not.toMatch(/plain-secret|AAAA|abcdefgh/);
  expect(text().match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(6);
  // Control: other text of the same lines is there.
  expect(text()).toContain('it said');
});

it.each([false, true])('text of a user moves no terminal (pretty: %s)', (pretty) => {
  const { log, text } = logger(pretty);
  log.warn({ said: '\u001b]0;owned\u0007\u009b2J', '\u009bkey': 1 }, 'hi \u001b[2J\u202e');
  // The printer's own colours are the only sequences there are.
  expect(text().replaceAll(COLOUR, '').replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(text()).toContain('owned');
});

it('for people a line is its message and its fields, an error has its stack below', () => {
  const { log, text } = logger(true);
  const event = { type: 'call.denied', cursor: 7, atMs: 1000, tenant: 'acme', thread: 'thr_1', run: 'run_1' } as const;
  logEvent(log, { ...event, data: { capability: 'shell.exec', codes: ['program_unknown'], decision: 'dec_1' } });
  log.error({ run: 'run_2', err: new Error('broken') }, 'error outside a run');
  const plain = text().replaceAll(COLOUR, '');
  expect(plain).toMatch(/^\[[\d:.]+\] WARN: call\.denied run=run_1 decision=dec_1 capability=shell\.exec codes=\["program_unknown"\]\n/);
  expect(plain).toMatch(/ERROR: error outside a run run=run_2\nError: broken\n +at /);
});

it('a threshold holds back what is below it', () => {
  const { log, text } = logger(false, 'silent');
  log.error({}, 'nobody hears it');
  expect(text()).toBe('');
});
