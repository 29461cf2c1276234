import type { NewApproval } from '../../core/approval/types.ts';
import { newId } from '../../core/ids.ts';
import { sha256Hex } from '../../core/json.ts';
import type { Store } from '../../core/ports/store.ts';

export const SCRIPT = 'echo deploy\n';

/** An ask as the kernel would make it of `sh deploy.sh`, with what a test changes. */
export function newAsk(nowMs: number, change: Partial<NewApproval> = {}): NewApproval {
  const sha256 = sha256Hex(SCRIPT);
  return {
    id: newId('approval', nowMs),
    roles: ['user'],
    origin: 'interactive',
    args: { argv: ['sh', 'deploy.sh'] },
    fingerprint: 'f'.repeat(64),
    ceiling: { startedBy: 'kernel', leases: [], hosts: [], outputBytes: 65_536, wallMs: 130_000 },
    digests: { rules: 'r', data: 'd' },
    files: [{ argument: 1, path: 'deploy.sh', sha256, size: SCRIPT.length }],
    kept: [{ sha256, body: Buffer.from(SCRIPT).toString('base64') }],
    shown: { text: 'shell.exec for ann of acme\nCommand: "sh" "deploy.sh"', warnings: [] },
    reasons: [{ code: 'approval_required', message: 'shell.exec needs an approval.' }],
    expiresAtMs: nowMs + 3_600_000,
    useWithinMs: 600_000,
    ...change,
  };
}

/** A run of the user that is parked on an ask; the user's other runs must have ended. @returns the ask's id */
export async function askedApproval(
  store: Store,
  at: { tenant: string; user: string; nowMs: number; change?: Partial<NewApproval> },
): Promise<string> {
  const { tenant, user, nowMs, change } = at;
  const { run } = await store.threads.post({ tenant, actor: user, origin: 'interactive', body: 'deploy', nowMs });
  for (;;) {
    const claimed = await store.runs.claim({ holder: 'k', nowMs, leaseMs: 30_000, deadlineMs: nowMs + 60_000, perUser: 1 });
    if (claimed === undefined) throw new Error('the run was not claimed');
    if (claimed.id !== run.id) continue;
    const ref = { run: run.id, fence: claimed.fence };
    const scope = { tenant, thread: run.thread, run: run.id };
    const ask = newAsk(nowMs, change);
    const decision = { effect: 'ask', reasons: ask.reasons, obligations: [], digests: ask.digests, durationUs: 1 } as const;
    await store.calls.open(ref, {
      ...{ key: { step: 0, call: 2 }, capability: 'shell.exec', effectClass: 'once', argsDigest: 'a', summary: 'sh deploy.sh', nowMs, ask },
      decision: { id: newId('decision', nowMs), inputDigest: 'i', decision },
      event: { type: 'approval.requested', ...scope, data: { approval: ask.id } },
    });
    await store.runs.settle(ref, {
      ...{ to: 'parked', outcome: 'parked', nowMs, gate: { kind: 'approval', ref: ask.id, reason: 'sh deploy.sh' } },
      event: { type: 'run.parked', ...scope, data: {} },
    });
    return ask.id;
  }
}
