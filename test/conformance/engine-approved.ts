import { expect, it } from 'vitest';
import { INSIDE } from '../../adapters/sandbox/slices.ts';
import { APPROVED_DIR } from '../../core/approval/pinned-files.ts';
import { sha256Hex } from '../../core/json.ts';
import type { TestKernel, TestSandbox } from '../support/sandbox-client.ts';

/** N7: where the bytes lie that a person approved. */
export function approvedFileClauses(current: { readonly kernel: TestKernel; readonly sandbox: TestSandbox }): void {
  it('N7 approved files are put where tools read and run them, and change nothing', async () => {
    const text = '#!/bin/sh\necho "run by $(id -u)"\n';
    const sha256 = sha256Hex(text);
    const path = `${APPROVED_DIR}/${sha256}/x.sh`;
    // As the guest places them: a directory of the digest, then the file under its own name.
    await current.sandbox.executor(
      `const fs = require('node:fs'); const dir = ${JSON.stringify(`${APPROVED_DIR}/${sha256}`)};
       fs.mkdirSync(dir, { mode: 0o755 }); fs.writeFileSync(dir + '/draft', ${JSON.stringify(text)}, { mode: 0o555, flag: 'wx' });
       fs.renameSync(dir + '/draft', dir + '/x.sh')`,
    );
    expect((await current.sandbox.tool(['cat', path])).stdout).toBe(text);
    expect((await current.sandbox.tool([path])).stdout).toBe(`run by ${INSIDE.toolUid}\n`);
    const attacks = [
      `echo other > ${path}`,
      `rm -f ${path}`,
      `mv ${path} ${path}.old`,
      `chmod 777 ${path}`,
      `echo other > ${APPROVED_DIR}/${sha256}/y.sh`,
      `mkdir ${APPROVED_DIR}/other`,
      `ln -s /tmp ${APPROVED_DIR}/other`,
      `mv ${APPROVED_DIR}/${sha256} ${APPROVED_DIR}/other`,
      `mount -t tmpfs none ${APPROVED_DIR}`,
    ];
    for (const attack of attacks) expect((await current.sandbox.tool(['sh', '-c', attack])).code, attack).not.toBe(0);
    expect((await current.sandbox.tool([path])).stdout).toBe(`run by ${INSIDE.toolUid}\n`);
    expect((await current.sandbox.tool(['ls', '-A', APPROVED_DIR, `${APPROVED_DIR}/${sha256}`])).stdout).toBe(
      `${APPROVED_DIR}:\n${sha256}\n\n${APPROVED_DIR}/${sha256}:\nx.sh\n`,
    );
    // Control: where the executor lets everybody write, the same words work, and other bytes run.
    await current.sandbox.executor(`require('node:fs').chmodSync(${JSON.stringify(`${APPROVED_DIR}/${sha256}`)}, 0o777)`);
    expect(
      (await current.sandbox.tool(['sh', '-c', `rm -f ${path} && printf '#!/bin/sh\\necho other' > ${path} && chmod 755 ${path}`])).code,
    ).toBe(0);
    expect((await current.sandbox.tool([path])).stdout).toBe('other\n');
    // The sandbox serves further clauses, one of which looks for what tools may write.
    await current.sandbox.executor(`require('node:fs').rmSync(${JSON.stringify(`${APPROVED_DIR}/${sha256}`)}, { recursive: true })`);
  });

  it('N7 a new sandbox of the same owner has none of the files that were approved in an earlier one', async () => {
    const earlier = await current.kernel.start({ slice: 4 });
    await earlier.executor(`require('node:fs').mkdirSync('${APPROVED_DIR}/kept')`);
    await earlier.stop();
    const later = await current.kernel.start({ slice: 4 });
    expect((await later.tool(['ls', '-A', APPROVED_DIR])).stdout).toBe('');
    await later.stop();
  });
}
