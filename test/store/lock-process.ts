import { lockStateDir } from '../../adapters/store/state-lock.ts';

/** Holds the lock of a state directory until it is killed, or says why it cannot. */
const [dir = ''] = process.argv.slice(2);
try {
  await lockStateDir(dir);
  process.stdout.write('locked\n');
  setInterval(() => {}, 60_000);
} catch (error) {
  process.stdout.write(`${(error as { code: string }).code}\n`);
}
