import { readdirSync, readFileSync } from 'node:fs';
import { startGuest } from '../support/guest-process.ts';
import { livePids } from '../support/live-pids.ts';
import type { Figure } from './figure.ts';

const COMMANDS = 10_000;
const AT_ONCE = 8;

/** Ten thousand short commands, several at once, some of which leave children and files of their own streams: what is left of them. */
export async function benchSoak(): Promise<Figure[]> {
  await using guest = await startGuest();
  const pid = guest.child.pid ?? 0;
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
  const files = () => [guest.workspace, guest.home].reduce((sum, dir) => sum + readdirSync(dir, { recursive: true }).length, 0);
  const kinds = [
    ['true'],
    ['sh', '-c', 'echo out; echo err >&2; exit 3'],
    ['sh', '-c', 'sleep 60 & echo started'],
    ['sh', '-c', 'cat; kill -9 $$'],
    ['no-such-program'],
  ];
  const run = (i: number) =>
    guest.membrane.exec(`run_${i % 7}`, { argv: kinds[i % kinds.length] ?? ['true'], stdin: i % 5 === 3 ? 'input' : '' });
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => run(i)));
  const before = { descriptors: descriptors(), files: files() };
  let next = 0;
  let lost = 0;
  const worker = async () => {
    while (next < COMMANDS) {
      next += 1;
      if ((await run(next)).exec === undefined) lost += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const left = livePids(guest.gids.filter((gid) => gid !== guest.helperGid)).length;
  const zombies = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter((child) => child !== '').length;
  return [
    zero('soak.leftProcesses', left + zombies),
    // One batch of FIFOs in the making and connections that are kept alive come and go.
    {
      ...zero('soak.leftDescriptors', Math.max(0, descriptors() - before.descriptors)),
      target: '≤ 8',
      met: descriptors() - before.descriptors <= 8,
    },
    zero('soak.leftFiles', files() - before.files),
    zero('soak.withoutOutcome', lost),
  ];
}

const zero = (id: string, measured: number): Figure => ({ id, target: '0', measured, baseline: null, ratio: null, met: measured === 0 });
