import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { PrerequisiteError } from '../core/errors.ts';

/** A file to fetch, and what it must be. Both come from configuration: no host is written in this package. */
export interface Download {
  /** http or https. */
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** Largest file that is fetched. */
const MOST_BYTES = 512 * 1024 * 1024;
const WITHIN_MS = 15 * 60_000;

/**
 * Fetches into a new file, which is there, whole and on the disk only when its digest is the expected one: nothing is run, piped or unpacked
 * before. Redirections are followed, since the digest decides.
 *
 * @param file - must not exist; it is readable by this user alone, and no program yet
 * @throws PrerequisiteError `download_failed` when it cannot be fetched whole, `digest_mismatch` when it is something else; no file is left
 */
export async function download({ url, sha256 }: Download, file: string, withinMs = WITHIN_MS): Promise<void> {
  const target = await open(file, 'wx', 0o600);
  try {
    const digest = createHash('sha256');
    for await (const chunk of await bodyOf(url, withinMs)) {
      digest.update(chunk);
      await target.writeFile(chunk);
    }
    const found = digest.digest('hex');
    if (found !== sha256.toLowerCase()) {
      throw new PrerequisiteError('digest_mismatch', `${url} has the digest ${found}, and ${sha256} was expected`, {
        hint: 'nothing of it was run; find out why before changing the digest',
      });
    }
    await target.sync();
  } catch (error) {
    await rm(file, { force: true });
    if (error instanceof PrerequisiteError) throw error;
    throw failed(url, reasonOf(error), error);
  } finally {
    await target.close();
  }
}

async function* bodyOf(url: string, withinMs: number): AsyncGenerator<Uint8Array> {
  // What is hashed must be what the server has, not what somebody on the way has packed.
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' }, signal: AbortSignal.timeout(withinMs) });
  if (!answer.ok || answer.body === null) {
    await answer.body?.cancel();
    throw failed(url, `HTTP ${answer.status}`);
  }
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.byteLength;
    if (bytes > MOST_BYTES) throw failed(url, `more than ${MOST_BYTES} bytes`);
    yield chunk;
  }
}

const failed = (url: string, why: string, cause?: unknown): PrerequisiteError =>
  new PrerequisiteError('download_failed', `${url} could not be fetched: ${why}`, { cause, hint: 'nothing was installed; try again' });

/** The client's own message is "fetch failed"; what failed is below it. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { readonly message?: string; readonly cause?: { readonly message?: string; readonly code?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
