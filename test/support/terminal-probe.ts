/**
 * Started on a terminal of its own by the test of T12: opens a kernel (in this session, so with this terminal), starts one sandbox and
 * writes to `argv[2]` what the executor could do with the terminal. `argv[3]` is a weakening as JSON.
 */
import { writeFileSync } from 'node:fs';
import { kernelUsers, openKernel, type Weakening } from './sandbox-client.ts';

const [answer, weakeningText] = process.argv.slice(2) as [string, string];
const weakening = JSON.parse(weakeningText) as Weakening | null;
const [user] = kernelUsers();
if (user === undefined) throw new Error('no user');

// TIOCSTI is 0x5412 on Linux: one byte, as if it had been typed.
const typeOneByte = `open(my $tty, "+<", "/dev/tty") or do { print "no terminal"; exit }; my $byte = " ";
  print "terminal opened, ", (ioctl($tty, 0x5412, $byte) ? "typed" : "typing refused");`;

await using kernel = await openKernel(user);
const sandbox = await kernel.start(weakening === null ? {} : { weakening });
// Not through `tool`, which would start a session of its own.
const seen = await sandbox.executor<string>(
  `return require('node:child_process').execFileSync('perl', ['-e', ${JSON.stringify(typeOneByte)}], { encoding: 'utf8' })`,
);
writeFileSync(answer, seen);
await sandbox.stop();
