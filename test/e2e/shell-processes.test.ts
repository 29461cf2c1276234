import { describe, expect, it } from 'vitest';
import type { RecordedCommand } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, e2e, scenario, workload } from '../support/e2e.ts';

/** Makes processes until none can be made, and keeps them. */
const FILL = '$| = 1; for (1 .. 500) { my $p = fork; last unless defined $p; if (!$p) { sleep 600; exit } } print "full\\n"; sleep 600';
const config = { limits: { ...SANDBOX_LIMITS, pids: 64 } };

describe.each(PLACEMENTS)('want of processes under %s', (placement) => {
  it('BL-083 is told of a command that runs into it, however the command takes it, and of no other; the sandbox goes on', async () => {
    const commands = [
      ['sh', '-c', 'for i in $(seq 200); do sleep 600 & done; echo not reached'],
      ['perl', '-e', 'for (1 .. 200) { my $p = fork; last unless defined $p; if (!$p) { sleep 600; exit } }'],
      ['sh', '-c', 'for i in $(seq 10); do sleep 600 & done; echo all'],
    ];
    await using world = await e2e({ placement, config, scenario: scenario('bombs', commands) });
    const view = await world.turn('go');
    const [shell, quiet, ordinary] = commandsOf(view) as RecordedCommand[];
    expect(view.run.state).toBe('completed');
    expect(shell).toMatchObject({ exitCode: 2, stdout: '', pids: true });
    expect(quiet).toMatchObject({ exitCode: 0, pids: true });
    expect(ordinary).toMatchObject({ exitCode: 0, stdout: 'all\n' });
    expect(ordinary).not.toHaveProperty('pids');
  });

  it('BL-083 what a background command leaves no process for is `pids`, whatever it is, until that command is ended', async () => {
    const shell = (argv: readonly string[], more: { readonly [name: string]: Json } = {}) => ({ tool: 'shell', args: { argv, ...more } });
    const many = 40;
    const calls = [
      shell(['perl', '-e', FILL], { background: true }),
      shell(['sh', '-c', 'until grep -q full "$1"; do :; done', 'sh', '{{result.0.0.background.log}}']),
      ...Array.from({ length: many }, () => shell(['true'])),
      { tool: 'background', args: { op: 'kill', id: '{{result.0.0.background.id}}' } },
      shell(['echo', 'again']),
    ];
    await using world = await e2e({ placement, config, scenario: workload(calls) });
    const view = await world.turn('go');
    expect(view.run.state).toBe('completed');
    const ends = view.calls.filter(({ capability }) => capability === 'shell.exec').map(({ outcome }) => outcome);
    const refused = ends.filter((end) => end?.kind === 'error');
    expect(refused.length).toBeGreaterThan(many / 2);
    expect(new Set(refused.map((end) => end?.kind === 'error' && end.code))).toEqual(new Set(['pids']));
    expect(commandsOf(view).at(-1)).toMatchObject({ exitCode: 0, stdout: 'again\n' });
  });
});
