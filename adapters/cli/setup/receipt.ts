import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../../../core/errors.ts';
import { type Environment, xdgDir } from '../../config/file.ts';

const absolute = z.string().regex(/^\/[^\0]*$/);

const added = z.discriminatedUnion('kind', [
  /** System packages that were not installed before. */
  z.strictObject({ kind: z.literal('packages'), names: z.array(z.string().regex(/^[a-z0-9][a-z0-9.+-]+$/)).min(1) }),
  /** A range of subordinate user and group ids, first and last id of both. */
  z.strictObject({ kind: z.literal('sub-ids'), user: z.string().regex(/^[^:\s-][^:\s]*$/), first: z.int().min(1), last: z.int().min(1) }),
  /** The folder of the OPA that was built. */
  z.strictObject({ kind: z.literal('opa'), path: absolute.regex(/\/outwork\/opa-[0-9.]+$/) }),
  z.strictObject({ kind: z.literal('state-directory'), path: absolute }),
]);

const receipt = z.strictObject({ schema: z.literal(1), added: z.array(added) });

/** Something that set-up brought to this machine, so that `setup --undo` can take it away again. What was there before is never in it. */
export type Added = z.infer<typeof added>;

/** Beside the state directory, not in it: it outlives that. */
export const receiptFile = (env: Environment): string => join(xdgDir(env, 'XDG_STATE_HOME', join('.local', 'state')), 'outwork-setup.json');

/** What set-up added, oldest first; nothing when there is no receipt. @throws ConfigError `config_malformed` when it is damaged */
export async function readReceipt(file: string): Promise<readonly Added[]> {
  try {
    return receipt.parse(JSON.parse(await readFile(file, 'utf8'))).added;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new ConfigError('config_malformed', `${file}: is not a receipt of outwork setup`, { cause, hint: 'nothing was removed' });
  }
}

/** Replaces the receipt in one step; an empty one is no file. */
export async function writeReceipt(file: string, entries: readonly Added[]): Promise<void> {
  if (entries.length === 0) {
    await rm(file, { force: true });
    return;
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, `${JSON.stringify({ schema: 1, added: entries }, null, 2)}\n`, { mode: 0o600 });
  await rename(fresh, file);
}
