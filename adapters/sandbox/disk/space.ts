import { statfs } from 'node:fs/promises';
import type { Space } from './guard.ts';

/** Room on the file system that `dir` lies on, as an ordinary user may use it. `dir` is the kernel's own. */
export async function spaceOf(dir: string): Promise<Space> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(dir);
  return {
    freeBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    freeInodes: files === 0 ? 1 : ffree / files,
  };
}
