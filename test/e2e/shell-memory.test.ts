import { describe, expect, it } from 'vitest';
import type { RecordedCommand } from '../../core/capability/types.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, e2e, scenario } from '../support/e2e.ts';

const HOG = 'b = []\nwhile True: b.append(bytearray(8 << 20))';

describe.each(PLACEMENTS)('out of memory under %s', (placement) => {
  it('EXE is told apart from a kill, of the command itself and of its child, and is no success; the sandbox goes on', async () => {
    const config = { limits: { ...SANDBOX_LIMITS, memoryMiB: 192 } };
    const commands = [
      ['python3', '-c', HOG],
      ['sh', '-c', `python3 -c "$1"; exit $?`, 'sh', HOG],
      ['sh', '-c', 'kill -9 $$'],
      ['echo', 'alive'],
    ];
    await using world = await e2e({ placement, config, scenario: scenario('hog', commands) });
    const [direct, child, killed, after] = commandsOf(await world.turn('go')) as RecordedCommand[];
    expect(direct).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: false, oom: true });
    expect(child).toMatchObject({ exitCode: 137, oom: true });
    expect(killed).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    expect(killed).not.toHaveProperty('oom');
    expect(after).toMatchObject({ exitCode: 0, stdout: 'alive\n' });
  });
});
