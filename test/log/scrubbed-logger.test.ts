import { describe, expect, it } from 'vitest';
import { pinoLogger } from '../../adapters/log/pino-logger.ts';
import { scrubbedLogger } from '../../adapters/log/scrubbed-logger.ts';
import { StoreError } from '../../core/errors.ts';
import type { Logger } from '../../core/seams/logger.ts';

const SECRET = 'Tq7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKa';
/** In two parts, so that this file holds none. */
const SHAPED = ['ghp', 'q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0o'].join('_');

function logged(secrets: () => readonly string[], say: (log: Logger) => void, pretty = false): string {
  const lines: string[] = [];
  const raw = pinoLogger({ level: 'debug', pretty, write: (text) => lines.push(text) });
  say(scrubbedLogger(raw, secrets));
  return lines.join('');
}

const everywhere = (log: Logger) => {
  const cause = new Error(`cause ${SECRET}`);
  log.info({ run: 'run_1', note: `field ${SECRET}`, deep: { list: [`deep ${SECRET}`], [`key ${SECRET}`]: 1 } }, `message ${SECRET}`);
  log.warn({ encoded: Buffer.from(SECRET).toString('base64'), hex: Buffer.from(SECRET).toString('hex') }, 'encoded');
  log.debug({ split: `${SECRET.slice(0, 9)}\u001b[0m${SECRET.slice(9)}` }, 'split by a sequence');
  log.error({ err: new StoreError('conflict', `error ${SECRET}`, { cause, hint: `hint ${SECRET}` }) }, 'an error');
};

const HALF = SECRET.slice(0, SECRET.length / 2);

describe('what the kernel logs', () => {
  it.each([false, true])(
    'holds no live secret: message, fields at any depth, keys, errors, causes, encoded, split (pretty: %s)',
    (pretty) => {
      const text = logged(() => [SECRET], everywhere, pretty);
      for (const form of [SECRET, HALF, Buffer.from(SECRET).toString('base64'), Buffer.from(SECRET).toString('hex')]) {
        expect(text).not.toContain(form);
      }
      expect(text.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(7);
      expect(text).toContain('run_1');
    },
  );

  it('(control) the same text stays when the secret is not live', () => {
    const text = logged(() => [], everywhere);
    for (const part of ['message', 'field', 'deep', 'key', 'error', 'cause', 'hint']) expect(text).toContain(`${part} ${SECRET}`);
  });

  it('what looks like a credential is replaced whether or not any secret is live', () => {
    const text = logged(
      () => [],
      (log) => log.info({ note: `token ${SHAPED}` }, `said ${SHAPED}`),
    );
    expect(text).not.toContain(SHAPED);
    expect(text).toContain('token [redacted]');
  });

  it('knows the secrets of the moment: one that came or went between two lines counts, or does not', () => {
    let live: readonly string[] = [];
    const text = logged(
      () => live,
      (log) => {
        log.info({}, `before ${SECRET}`);
        live = [SECRET];
        log.info({}, `live ${SECRET}`);
        live = ['another-secret-0123456789'];
        log.info({}, `after ${SECRET}`);
      },
    );
    expect(text).toContain(`before ${SECRET}`);
    expect(text).toContain('live [redacted]');
    expect(text).toContain(`after ${SECRET}`);
  });

  it('leaves the thrown error as it is, and its copy is one of the same class', () => {
    const error = new StoreError('conflict', `error ${SECRET}`);
    const seen: unknown[] = [];
    const sink = ({ err }: { err?: unknown }) => void seen.push(err);
    scrubbedLogger({ debug: sink, info: sink, warn: sink, error: sink }, () => [SECRET]).error({ err: error }, 'x');
    expect(error.message).toContain(SECRET);
    expect(seen[0]).toBeInstanceOf(StoreError);
    expect(seen[0]).toMatchObject({ code: 'conflict', message: 'error [redacted]', stack: expect.not.stringContaining(SECRET) });
  });

  it('what refers to itself ends somewhere', () => {
    const loop: { name: string; self?: unknown } = { name: SECRET };
    loop.self = loop;
    expect(
      logged(
        () => [SECRET],
        (log) => log.info({ loop }, 'loop'),
      ),
    ).not.toContain(HALF);
  });

  it('is a line whatever the broker and the values do: what cannot be scrubbed is withheld, and nothing is thrown', () => {
    const hostile = Object.defineProperty(new Error('hostile'), 'body', { enumerable: true, get: () => expect.fail(SECRET) });
    const lines = [
      logged(
        () => {
          throw new Error(`no vault ${SECRET}`);
        },
        (log) => log.error({ note: SECRET }, `said ${SECRET}`),
      ),
      logged(
        () => [SECRET],
        (log) => log.error({ err: hostile }, 'an error'),
      ),
    ];
    for (const line of lines) {
      expect(line).not.toContain(SECRET);
      expect(line).toContain('withheld');
    }
  });

  it('looks at a bounded part of what an error drags along, in circles too', () => {
    const circle: Record<string, unknown>[] = Array.from({ length: 40 }, () => ({}));
    let reads = 0;
    for (const node of circle) {
      for (const [at, other] of circle.entries()) {
        Object.defineProperty(node, `to${at}`, {
          enumerable: true,
          get: () => {
            reads += 1;
            return reads > 100_000 ? expect.fail('without end') : other;
          },
        });
      }
    }
    const text = logged(
      () => [SECRET],
      (log) => log.error({ err: Object.assign(new Error(`dragging ${SECRET}`), { request: circle[0] }) }, 'an error'),
    );
    expect(reads).toBeLessThanOrEqual(500);
    expect(text).toContain('dragging [redacted]');
    expect(text).not.toContain(SECRET);
  });
});
