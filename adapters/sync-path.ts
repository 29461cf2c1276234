import { open } from 'node:fs/promises';

/** What the file holds, or which names the directory has, is on the disk when this resolves. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
