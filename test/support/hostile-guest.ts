import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { sha256Hex } from '../../core/json.ts';

/** A hostile executor of `hostile-guests/` as the one file that a sandbox is given. */
export interface HostileGuest extends Disposable {
  readonly file: string;
  readonly sha256: string;
}

export async function hostileGuest(name: 'forger' | 'thief'): Promise<HostileGuest> {
  await using bundle = await rolldown({
    input: join(import.meta.dirname, 'hostile-guests', `${name}.cjs`),
    platform: 'node',
    logLevel: 'warn',
  });
  const { output } = await bundle.generate({ format: 'cjs', codeSplitting: false });
  const dir = mkdtempSync(join(tmpdir(), 'ow-hostile-'));
  const file = join(dir, 'guest.cjs');
  const { code } = output[0];
  writeFileSync(file, code);
  return { file, sha256: sha256Hex(Buffer.from(code)), [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}
