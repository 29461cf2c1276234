import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { commandsOf, type E2e, e2e, scenario } from '../support/e2e.ts';

const ADA = { tenant: 'default', user: 'ada' };
const put = (world: E2e, path: string) => world.kernel.importFile(ADA, path, Readable.from([Buffer.from('from-the-kernel')]));
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'written',
    (error: { code?: string }) => error.code ?? String(error),
  );

/** Everything of the kernel's bytes that lies outside the workspace; the helper has the tool uid, so /tmp is its to write. */
const LEAKED = ['sh', '-c', 'grep -rl from-the-kernel /tmp "$HOME" 2>/dev/null; true'];
const SETUP =
  'mkdir -p /tmp/out inside; ln -s /tmp/out dir; ln -s /tmp/out/leaf leaf; ln -s dir chain; ln -s inside good; mkfifo pipe; ln -s /etc etc';
/** Swaps a directory for a link out of the workspace, and back, without end. */
const SWAP = `mkdir "d"; symlink "/tmp/out", "l"; for (my $n = 0; ; $n++) {
  rename("d", "race") or rename("race", "junk$n"); rename("race", "d"); rename("l", "race"); rename("race", "l") }`;
/** As careless code writes: by path. */
const NAIVE = 'for i in $(seq 3000); do echo from-the-kernel >race/naive$i; done 2>/dev/null; ls /tmp/out | grep -c naive';

describe('T20 the file helper of a real guest', () => {
  it('T20 tool: no planted link, FIFO or `..` leads the kernel’s bytes out of the workspace', async () => {
    await using world = await e2e({ scenario: scenario('plant', [['sh', '-c', SETUP]]) });
    await world.turn('plant');
    const codes: Record<string, string> = {};
    for (const path of ['dir/x', 'chain/x', 'leaf', 'etc/x', '../x', 'inside/../../x', '/tmp/out/x', 'pipe', 'inside', 'good/fine'])
      codes[path] = await codeOf(put(world, path));
    expect(codes).toEqual({
      ...{ 'dir/x': 'path_outside_workspace', 'chain/x': 'path_outside_workspace', 'etc/x': 'path_outside_workspace' },
      ...{ '../x': 'path_outside_workspace', 'inside/../../x': 'path_outside_workspace', '/tmp/out/x': 'path_outside_workspace' },
      ...{ leaf: 'not_a_regular_file', pipe: 'not_a_regular_file', inside: 'not_a_regular_file', 'good/fine': 'written' },
    });
    await world.switchScenario(scenario('look', [LEAKED, ['cat', 'inside/fine']]));
    expect(commandsOf(await world.turn('look')).slice(-2)).toMatchObject([{ stdout: '' }, { stdout: 'from-the-kernel' }]);
  });

  it('T20 tool: a directory swapped for a link during the write leads nothing out; control: a write by path is led out', async () => {
    await using world = await e2e({
      scenario: scenario('swap', [['mkdir', '-p', '/tmp/out']], { background: ['perl', '-e', SWAP] }),
    });
    await world.turn('swap');
    const codes = new Set<string>();
    for (let i = 0; i < 300; i += 1) codes.add(await codeOf(put(world, `race/f${i}`)));
    for (const code of codes)
      expect(['written', 'path_outside_workspace', 'file_not_found', 'not_a_regular_file', 'io_failed']).toContain(code);
    await world.switchScenario(
      scenario('look', [
        ['sh', '-c', 'ls /tmp/out'],
        ['sh', '-c', NAIVE],
      ]),
    );
    const [seen, naive] = commandsOf(await world.turn('look')).slice(-2);
    expect(seen).toMatchObject({ exitCode: 0, stdout: '' });
    expect(Number(naive?.stdout)).toBeGreaterThan(0);
  });
});
