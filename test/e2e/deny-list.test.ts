import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lineLogger } from '../../adapters/log/line-logger.ts';
import { DESCRIPTORS, enforcerOf } from '../../core/capability/descriptors.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, denyProgram, e2e, scenario } from '../support/e2e.ts';
import { hostileGuest } from '../support/hostile-guest.ts';

describe.each(PLACEMENTS)('a program on the deny list, under %s', (placement) => {
  it('is refused without a restart, with its code in the event; before, it ran', async () => {
    await using world = await e2e({ placement, scenario: scenario('touch', [['touch', 'made']]) });
    expect(commandsOf(await world.turn('before'))).toMatchObject([{ exitCode: 0 }]);
    await denyProgram(world, 'touch');
    const view = await world.turn('after');
    expect(view.run.state).toBe('completed');
    expect(commandsOf(view)).toEqual([]);
    expect(view.calls.find((row) => row.capability === 'shell.exec')?.outcome).toMatchObject({
      kind: 'denied',
      reasons: [{ code: 'program_denied' }],
    });
    const denied = (await world.kernel.events(0, { run: view.run.id }, 100)).find((event) => event.type === 'call.denied');
    expect(denied?.data).toMatchObject({ capability: 'shell.exec', codes: ['program_denied'] });
  });
});

describe.each(['disposable-per-run', 'persistent-per-user'] as const)('a forged executor under %s', (placement) => {
  it('can run the denied program, with no credential, no egress and no record, and we say who enforces what', async () => {
    using guest = await hostileGuest('forger');
    await using world = await e2e({ placement, kernel: { guest } });
    await denyProgram(world, 'touch');
    const view = await world.turn('go');
    expect(view.run.state).toBe('completed');
    const { messages } = await world.kernel.showThread('default', view.run.thread);
    const report = JSON.parse(messages.at(-1)?.body ?? '{}');
    expect(report).toMatchObject({ answer: { effect: 'denied', reasons: [{ code: 'program_denied' }] }, ran: true, credentials: [] });
    expect(report.interfaces.map((name: string) => name.trim())).toEqual(['lo:']);
    expect(report.claimed).toMatchObject({ error: { code: 'permit_unknown' } });
    expect(view.calls.filter((row) => row.capability === 'shell.exec')).toMatchObject([{ outcome: { kind: 'denied' } }]);
    expect(enforcerOf(DESCRIPTORS['shell.exec'], placement)).toBe('executor');
  });
});

it('a kernel that starts beside rules that are refused says so and why; the older ones decide', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'rules-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  cpSync('policies', dir, { recursive: true });
  const lines: string[] = [];
  await using world = await e2e({ config: { policy: { dir } }, kernel: { log: lineLogger((line) => lines.push(line)) } });
  writeFileSync(join(dir, 'data', 'call.yaml'), 'allowed: {}\n');
  expect(lines.join('')).not.toContain('refused');
  await using again = await world.reopen();
  expect((await again.turn('hello')).run.state).toBe('completed');
  expect(lines.join('')).toMatch(/rules on disk are refused, older ones run \(outwork policy status\): .*call/);
});

it('where the kernel starts the command, a deny is the kernel’s to enforce', () => {
  expect(enforcerOf(DESCRIPTORS['shell.exec'], 'host-loop-shell')).toBe('kernel');
});
