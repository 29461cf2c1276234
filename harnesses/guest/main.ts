import { serveFiles } from './file-helper.ts';
import { runGuest } from './guest.ts';
import { seedHome } from './home.ts';

/**
 * The one program of ours inside a sandbox: `node guest.cjs` is the guest, `node guest.cjs file-helper` its resident file helper,
 * `node guest.cjs seed-home DIR` brings HOME what it lacks of a seed.
 */
const bundle = process.argv[1] ?? '';
const home = process.env.HOME ?? '/home/agent';
switch (process.argv[2]) {
  case 'file-helper':
    serveFiles({ workspace: process.env.OUTWORK_WORKSPACE ?? '/workspace', home });
    break;
  case 'seed-home':
    process.umask(0o022);
    try {
      seedHome({ home, source: process.argv[3] ?? '' });
    } catch (error) {
      process.stderr.write(`${(error as Error).message}\n`);
      process.exitCode = 1;
    }
    break;
  default:
    void runGuest(bundle).then((code) => process.exit(code));
}
