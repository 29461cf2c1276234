import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteStore } from '../../adapters/store/mikro-orm/store.ts';
import type { NewApproval } from '../../core/approval/types.ts';
import { askedApproval } from '../support/asked-approval.ts';
import { commandLine } from '../support/command-line.ts';

let dir: string;
let approval: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'outwork-cli-'));
  approval = await ask();
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Leaves an ask of a new user in the state directory, as a kernel that has ended would. */
async function ask(change: Partial<NewApproval> = {}): Promise<string> {
  const store = await openSqliteStore({ file: join(dir, 'outwork.db') });
  const user = `ann${(await store.users.list()).length}`;
  await store.users.add({ tenant: 'default', name: user, roles: ['user'], nowMs: Date.now() });
  const id = await askedApproval(store, { tenant: 'default', user, nowMs: Date.now(), change });
  await store.close();
  return id;
}

/** One command line over the real rows and the real rules. */
const run = (...args: string[]) => commandLine(dir, [...args, '--state', dir]);
const json = async (...args: string[]) => {
  const { code, stdout } = await run(...args, '--json');
  return { code, document: JSON.parse(stdout) };
};

describe('outwork approval', () => {
  it('ls shows what waits for an answer, show all that an approver must see', async () => {
    const list = await run('approval', 'ls');
    expect(list.stdout).toContain(`${approval}  pending  default/ann0`);
    expect(list.stdout).toContain('shell.exec: "sh" "deploy.sh"');
    const { code, stdout, stderr } = await run('approval', 'show', approval);
    expect(code).toBe(0);
    for (const part of ['Command: "sh" "deploy.sh"', '--- deploy.sh', 'echo deploy', `fingerprint ${'f'.repeat(64)}`])
      expect(stdout).toContain(part);
    expect(stderr).toContain(`outwork approval approve ${approval}`);
    expect((await json('approval', 'ls')).document).toMatchObject([{ id: approval, state: 'pending' }]);
    expect((await json('approval', 'show', approval)).document).toMatchObject({
      approval: { id: approval },
      files: [{ text: 'echo deploy\n' }],
    });
  });

  it('approve answers as the local operator without a kernel, by the shipped rules; its run waits to be claimed', async () => {
    expect(await run('approval', 'approve', approval, '--note', 'go')).toMatchObject({ code: 0, stdout: `${approval} approved\n` });
    const { document } = await json('approval', 'show', approval);
    expect(document.approval).toMatchObject({ state: 'approved', answeredBy: 'local:operator', note: 'go' });
    expect((await json('runs', 'show', document.approval.run)).document).toMatchObject({ run: { state: 'queued' } });
    expect((await run('approval', 'ls')).stdout).toBe('');
    expect((await run('approval', 'ls', '--in', 'all')).stdout).toContain('approved');
  });

  it('BL-118 BL-120 a second answer and an unknown ask are exit 2, each with its code', async () => {
    await run('approval', 'deny', approval);
    const again = await json('approval', 'approve', approval);
    expect([again.code, again.document.error.code]).toEqual([2, 'conflict']);
    const none = await json('approval', 'approve', `apr_${'0'.repeat(26)}`);
    expect([none.code, none.document.error.code]).toEqual([2, 'not_found']);
  });

  it('BL-118 an ask whose time is over is exit 2 and says so', async () => {
    const late = await ask({ expiresAtMs: Date.now() - 1 });
    const { code, document } = await json('approval', 'approve', late);
    expect([code, document.error.code]).toEqual([2, 'approval_expired']);
  });

  it('a parked run says what has to happen', async () => {
    const { document } = await json('approval', 'show', approval);
    expect((await run('runs', 'show', document.approval.run)).stdout).toContain(`outwork approval show ${approval}`);
  });
});
