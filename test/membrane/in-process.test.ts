import { describe, expect, it } from 'vitest';
import { bindInProcess } from '../../adapters/membrane/in-process.ts';
import { CallError } from '../../core/errors.ts';
import { runClaims } from './harness.ts';
import { recordingService, scopeFrom } from './recording-service.ts';

const request = { key: { step: 0, call: 2 }, capability: 'shell.exec', args: { argv: ['ls'] } } as const;
const bind = () => {
  const service = recordingService();
  return { service, client: bindInProcess(service, scopeFrom(runClaims('ada'))) };
};

describe('bindInProcess', () => {
  it('binds every operation of a client to the one scope', async () => {
    const { service, client } = bind();
    expect((await client.context()).run).toBe('run-ada');
    expect(await client.checkpoint()).toBeUndefined();
    expect(await client.call(request)).toEqual({ effect: 'done', result: { ok: true }, replayed: false });
    await client.progress({ note: 'x' });
    expect(await client.steer(4)).toEqual({ messages: [{ seq: 5, body: 'go left' }], cancelled: false });
    expect(service.executed.map(({ operation }) => operation)).toEqual([
      'context.get',
      'checkpoint.get',
      'call',
      'progress.emit',
      'steer.next',
    ]);
    expect(new Set(service.executed.map(({ run }) => run))).toEqual(new Set(['run-ada']));
  });

  it('passes deltas on', async () => {
    const { service, client } = bind();
    service.onCall = async (_body, onDelta) => {
      onDelta?.('a');
      onDelta?.('b');
      return { effect: 'done', result: 'ab', replayed: false };
    };
    const seen: string[] = [];
    expect(await client.callStream(request, (text) => seen.push(text))).toMatchObject({ result: 'ab' });
    expect(seen).toEqual(['a', 'b']);
  });

  it('a permit is an error: a loop in the kernel never runs a local command', async () => {
    const { service, client } = bind();
    service.onCall = async () => ({ effect: 'permit', permit: { id: 'prm_1', deadlineMs: 1, timeoutMs: 1, outputBytes: 1 } });
    await expect(client.call(request)).rejects.toMatchObject({ code: 'dispatch_failed' });
    await expect(client.callStream(request, () => undefined)).rejects.toMatchObject({ code: 'dispatch_failed' });
  });

  it('denials and gates are replies, refusals are errors with their code', async () => {
    const { service, client } = bind();
    service.onCall = async () => ({ effect: 'denied', reasons: [{ code: 'default_deny', message: 'no rule allows it' }] });
    expect(await client.call(request)).toMatchObject({ effect: 'denied' });
    service.onCall = async () => Promise.reject(new CallError('nondeterministic', 'other arguments'));
    await expect(client.call(request)).rejects.toMatchObject({ code: 'nondeterministic' });
  });

  it('progress that cannot be stored is refused as it is on the wire', async () => {
    const { service, client } = bind();
    await expect(client.progress({ note: 'a\0b' })).rejects.toMatchObject({ code: 'malformed' });
    expect(service.executed).toEqual([]);
  });
});
