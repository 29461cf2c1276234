import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PLACEMENTS } from '../../core/run/types.ts';
import { smallRepository } from '../support/e2e.ts';
import { kernelUsers } from '../support/sandbox-client.ts';
import type { SurveyReport } from '../support/survey-child.ts';

const CHILD = fileURLToPath(new URL('../support/survey-child.ts', import.meta.url));

/** A whole kernel as a child process of `user`: it surveys a repository and tells what it saw. */
async function survey(user: { uid: number; name: string }, placement: string): Promise<SurveyReport> {
  const dir = mkdtempSync(join('/tmp', 'owu-'));
  chmodSync(dir, 0o700);
  const gid = Number(execFileSync('id', ['-g', user.name], { encoding: 'utf8' }));
  chownSync(dir, user.uid, gid);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const ids = user.uid === process.getuid?.() ? {} : { uid: user.uid, gid };
  const child = fork(CHILD, [dir, placement], {
    ...ids,
    cwd: process.cwd(),
    env: { PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir },
  });
  child.send({ bundle: smallRepository().toString('base64') });
  const [report] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the kernel process ended with ${code}`))),
  ])) as [SurveyReport];
  await once(child, 'exit');
  return report;
}

describe.each(PLACEMENTS)('a whole survey turn under %s', (placement) => {
  it.each(kernelUsers())('completes in a kernel of $name', async (user) => {
    const report = await survey(user, placement);
    expect(report).toMatchObject({ uid: user.uid, state: 'completed', commands: 5, done: true });
    expect(report.reply).toContain('3 tracked files');
    // What the sandbox made belongs to ids of the user's own range, never to the kernel's user.
    expect(report.workspaceUids).not.toContain(user.uid);
    expect(report.workspaceUids.every((uid) => uid >= 100_000)).toBe(true);
  });
});
