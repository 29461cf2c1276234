import { describe, expect, it } from 'vitest';
import { noSecrets } from '../../adapters/broker/no-secrets.ts';
import type { Json } from '../../core/json.ts';
import { ProgressLog } from '../../core/run/progress.ts';
import { callWorld } from '../support/call-world.ts';

const SECRET = 'Zq3vN8rT1xK6wB9yL2mP5sD7fG4hJ0cV';

async function progressOf(...said: readonly (readonly Json[])[]): Promise<Json[]> {
  const { store, clock, scope } = await callWorld();
  const errors: unknown[] = [];
  const log = new ProgressLog({
    events: store.events,
    clock,
    broker: { ...noSecrets, liveSecrets: () => [SECRET] },
    onError: (error) => errors.push(error),
  });
  for (const burst of said) {
    for (const data of burst) log.add(scope, data);
    clock.advance(200);
  }
  await Promise.resolve();
  const events = await store.events.read(0, { run: scope.run }, 100);
  expect(errors).toEqual([]);
  return events.filter(({ type }) => type === 'run.progress').map(({ data }) => data.progress ?? null);
}

const command = (name: string, tail: string): Json => ({ command: name, stdoutBytes: tail.length, stderrBytes: 0, tail });

describe('progress', () => {
  it('of what comes within the interval the newest is an event, the run’s own and each command’s by itself', async () => {
    const burst = [{ at: 1 }, command('0.2', 'a'), { at: 2 }, command('0.3', 'b'), command('0.2', 'aa')];
    expect(await progressOf(burst, [{ at: 3 }])).toEqual([{ at: 2 }, command('0.2', 'aa'), command('0.3', 'b'), { at: 3 }]);
  });

  it('a run that names a thousand commands makes no thousand events', async () => {
    const events = await progressOf(Array.from({ length: 1000 }, (_, i) => command(`${i}.2`, 'x')));
    expect(events.length).toBeLessThanOrEqual(9);
  });

  it('BL-092 at any place a secret is cut by the window, the union of what was told does not hold it', async () => {
    for (let k = 1; k < SECRET.length; k += 1) {
      const said = await progressOf([command('0.2', `x ${SECRET.slice(0, k)}`)], [command('0.2', `${SECRET.slice(k)} y`)]);
      const text = JSON.stringify(said);
      const rest = (piece: string) => (text.includes(piece) ? piece.length : 0);
      expect(rest(SECRET.slice(0, k)) + rest(SECRET.slice(k))).toBeLessThan(8);
    }
  });

  it('BL-094 is shown to people: no control sequence, and no credential by its look', async () => {
    const [said] = await progressOf([command('0.2', '\x1b[31mred\x1b]0;t\x07 https://q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE@host.test/x')]);
    expect(said).toMatchObject({ tail: 'red https://[redacted]@host.test/x' });
  });

  it('what is too much is told by its size', async () => {
    expect(await progressOf([{ text: 'x'.repeat(5000) }])).toEqual([{ bytes: 5011, dropped: true }]);
  });
});
