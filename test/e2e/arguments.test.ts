import { describe, expect, it } from 'vitest';
import { PLACEMENTS } from '../../core/run/types.ts';
import type { ModelRequest } from '../../core/seams/model-gateway.ts';
import { commandsOf, e2e, processWith, scenario, uniqueSeconds } from '../support/e2e.ts';

describe.each(PLACEMENTS)('under %s', (placement) => {
  it.each([
    ['an empty program', [''], 'must NOT have fewer than 1 characters'],
    ['a NUL in an argument', ['printf', 'a\0b'], 'ill_formed_text'],
    ['half a character in an argument', ['printf', 'a\ud800'], 'ill_formed_text'],
  ])('WSP %s is `invalid_arguments`: nothing runs, the model is told, and the run goes on', async (_what, argv, why) => {
    const requests: ModelRequest[] = [];
    await using world = await e2e({
      placement,
      scenario: scenario('arguments', [argv, ['printf', 'next']]),
      onModel: async (request) => void requests.push(request),
    });
    const view = await world.turn('go');
    expect(view.run.state).toBe('completed');
    // Control: the well-formed command after it ran.
    expect(commandsOf(view)).toMatchObject([{ exitCode: 0, stdout: 'next' }]);
    const told = requests[1]?.messages.at(-1);
    expect(told).toMatchObject({ role: 'tool', content: expect.stringMatching(/^error: invalid_arguments: /) });
    expect(told?.content).toContain(why);
  });

  it('EXE a command that a closing kernel ends has no known end: the run parks, whatever the placement; what had ended stays done', async () => {
    const seconds = uniqueSeconds(600);
    const commands = [
      ['sh', '-c', 'echo once >>log'],
      ['sleep', seconds],
    ];
    await using world = await e2e({ placement, scenario: scenario('closing', commands) });
    const run = await world.post('go');
    await processWith(seconds);
    await using again = await world.reopen();
    const view = await again.until(run);
    expect(view.run).toMatchObject({ state: 'parked', gate: { kind: 'unknown' }, reclaims: 0 });
    const rows = view.calls.filter(({ capability }) => capability === 'shell.exec');
    expect(rows.map(({ state }) => state)).toEqual(['done', 'unknown']);
  });
});
