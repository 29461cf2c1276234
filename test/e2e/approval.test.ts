import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, type E2e, e2e, scenario } from '../support/e2e.ts';

const ada = { tenant: 'default', user: 'ada' };
const write = (world: E2e, path: string, text: string) => world.kernel.importFile(ada, path, Readable.from([Buffer.from(text)]));
const ENDED = ['completed', 'failed', 'cancelled'] as const;

/** Posts a turn and waits until it is parked on an ask. */
async function asked(world: E2e): Promise<{ run: string; approval: string }> {
  const { run } = await world.turn('do it');
  expect(run).toMatchObject({ state: 'parked', gate: { kind: 'approval' } });
  return { run: run.id, approval: run.gate?.ref ?? '' };
}

describe.each(PLACEMENTS)('an ask under %s', (placement) => {
  it('parks, is shown with the bytes it pins, and runs those bytes once when approved, whatever the file holds by then', async () => {
    await using world = await e2e({ placement, ask: ['shell.exec'], scenario: scenario('deploy', [['sh', 'deploy.sh']]) });
    await write(world, 'deploy.sh', 'echo approved >> log; cat log; id -u\n');
    const { run, approval } = await asked(world);
    expect(await world.kernel.listApprovals({ states: ['pending'], limit: 9 })).toMatchObject([{ id: approval, actor: 'ada' }]);
    expect(await world.kernel.showApproval(approval)).toMatchObject({
      files: [{ path: 'deploy.sh', text: 'echo approved >> log; cat log; id -u\n' }],
    });
    await write(world, 'deploy.sh', 'echo changed >> log; cat log\n');
    await world.kernel.answerApproval({ approval, answer: 'approve' });
    const view = await world.until(run, ENDED);
    expect(view.run.state).toBe('completed');
    expect(commandsOf(view)).toMatchObject([{ exitCode: 0, stdout: 'approved\n1000\n' }]);
    expect((await world.kernel.showApproval(approval)).approval.state).toBe('consumed');
  });
});
