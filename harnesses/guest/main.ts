import { serveFiles } from './file-helper.ts';
import { runGuest } from './guest.ts';

/** The one program of ours inside a sandbox: `node guest.cjs` is the guest, `node guest.cjs file-helper` its resident file helper. */
const bundle = process.argv[1] ?? '';
if (process.argv[2] === 'file-helper') {
  serveFiles({ workspace: process.env.OUTWORK_WORKSPACE ?? '/workspace', home: process.env.HOME ?? '/home/agent' });
} else {
  void runGuest(bundle).then((code) => process.exit(code));
}
