/**
 * A whole kernel in a process of its own, for tests that run it as another user: `argv` is a directory of that user and a placement. It is
 * sent a git bundle, clones it in a sandbox, surveys it in a second turn, and sends back what happened.
 */
import { lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { PlacementName } from '../../core/run/types.ts';
import { commandsOf, e2e, scenario } from './e2e.ts';

export interface SurveyReport {
  readonly uid: number;
  readonly state: string;
  readonly commands: number;
  /** Whether every row of the ledger is done. */
  readonly done: boolean;
  readonly reply: string;
  /** Host uids that own the workspace roots. */
  readonly workspaceUids: readonly number[];
}

const [dir, placement] = process.argv.slice(2) as [string, PlacementName];

async function survey(bundle: Buffer): Promise<SurveyReport> {
  const stateDir = join(dir, 'state');
  mkdirSync(stateDir, { mode: 0o700 });
  await using world = await e2e({ stateDir, placement, scenario: scenario('clone', [['git', 'clone', '-q', 'repo.bundle', 'repo']]) });
  await world.kernel.importFile({ tenant: 'default', user: 'ada' }, 'repo.bundle', Readable.from([bundle]));
  await world.turn('clone it');
  await world.switchScenario('survey');
  const view = await world.turn('survey the repository');
  const { messages } = await world.kernel.showThread('default', view.run.thread);
  const roots = join(stateDir, 'workspaces');
  return {
    uid: process.getuid?.() ?? -1,
    state: view.run.state,
    commands: commandsOf(view).length,
    done: view.calls.every((row) => row.state === 'done'),
    reply: messages.at(-1)?.body ?? '',
    workspaceUids: readdirSync(roots).map((name) => lstatSync(join(roots, name)).uid),
  };
}

process.once('message', ({ bundle }: { bundle: string }) => {
  void survey(Buffer.from(bundle, 'base64')).then((report) => process.send?.(report, () => process.disconnect()));
});
