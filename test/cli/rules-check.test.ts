import { mkdtempSync, rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { OPERATOR_SOCKET } from '../../adapters/api/operator-methods.ts';
import { serveOperations } from '../../adapters/api/operator-server.ts';
import { checkRules } from '../../adapters/cli/rules-check.ts';
import { loadConfig } from '../../adapters/config.ts';
import { createMetrics } from '../../adapters/metrics/metrics.ts';
import { systemClock } from '../../core/seams/clock.ts';
import { startEngine } from '../policy/support/engine.ts';
import { copyOfShipped, SHIPPED } from '../policy/support/policy-dir.ts';
import { createMemoryKernel } from '../support/memory-kernel.ts';

it('Y3 rules that are refused show in doctor and metrics, and are well there again once they are back', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'ow-rules-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }));
  const dir = await copyOfShipped();
  const { engine, clock } = await startEngine(dir);
  const rows = createMemoryKernel(loadConfig({ env: { HOME: stateDir }, cwd: stateDir, stateDir }));
  const server = await serveOperations({ ...rows, policyStatus: async () => engine.status() }, join(stateDir, OPERATOR_SOCKET));
  const gauges = async () => ({ runs: [], sandboxes: { starting: 0, busy: 0, idle: 0, stopping: 0 }, policy: engine.status() });
  const metrics = createMetrics({ gauges, clock: systemClock });
  onTestFinished(async () => {
    metrics.close();
    await server.close();
    await rows.close();
  });
  const look = async () => ({
    disk: (await checkRules(stateDir, SHIPPED, undefined)).find(({ id }) => id === 'rules.disk'),
    refused: /^outwork_policy_reload_refused (\d)$/m.exec(await metrics.text())?.[1],
    ready: engine.status().ready,
  });
  expect(await look()).toMatchObject({ disk: { ok: true }, refused: '0', ready: true });

  await rename(join(dir, 'data'), join(dir, 'away'));
  for (let poll = 0; poll < 3; poll += 1) await clock.poll();
  const bad = await look();
  expect(bad).toMatchObject({ disk: { ok: false, warning: true, fix: 'outwork policy status' }, refused: '1', ready: true });
  expect(bad.disk?.detail).toContain('older ones run');

  await rename(join(dir, 'away'), join(dir, 'data'));
  for (let poll = 0; poll < 3; poll += 1) await clock.poll();
  expect(await look()).toMatchObject({
    disk: { ok: true, detail: expect.stringContaining('are those that run') },
    refused: '0',
    ready: true,
  });
});
