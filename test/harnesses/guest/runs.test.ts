import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createScriptedGateway } from '../../../adapters/model/scripted-gateway.ts';
import type { CallReply, CallRequest } from '../../../core/capability/types.ts';
import type { Json } from '../../../core/json.ts';
import type { ModelRequest } from '../../../core/seams/model-gateway.ts';
import { type ControlMessage, WIRE_VERSION } from '../../../core/wire/protocol.ts';
import { GUEST_WIRE_VERSION } from '../../../harnesses/guest/guest.ts';
import { type GuestProcess, leaking, SANDBOX_TOKEN, spawnGuest, startGuest } from '../../support/guest-process.ts';
import { livePids } from '../../support/live-pids.ts';

const runMessage = (run: string, more: Partial<Extract<ControlMessage, { type: 'run' }>> = {}): ControlMessage => ({
  type: 'run',
  run,
  token: `token-${run}`,
  harness: 'scripted',
  deadlineMs: Date.now() + 60_000,
  ...more,
});

/** A kernel that says yes to all, with a scripted model. Commands become permits. */
function kernelOf(scenario: string, bounds: { timeoutMs?: number } = {}) {
  const model = createScriptedGateway({ scenario });
  const posted: string[] = [];
  const call = async (request: CallRequest): Promise<CallReply> => {
    const done = (result: Json): CallReply => ({ effect: 'done', result, replayed: false });
    switch (request.capability) {
      case 'model.generate':
        return done(
          (await model.generate(
            request.args as unknown as ModelRequest,
            { run: 'r', step: 0 },
            AbortSignal.timeout(5000),
          )) as unknown as Json,
        );
      case 'shell.exec':
        return {
          effect: 'permit',
          permit: { id: 'prm_1', deadlineMs: Date.now() + 30_000, timeoutMs: 20_000, outputBytes: 65_536, ...bounds },
        };
      case 'message.post':
        posted.push((request.args as { body: string }).body);
        return done({ posted: true });
      default:
        return done({ saved: true });
    }
  };
  return { call, posted };
}

const toolPids = (guest: GuestProcess) => livePids(guest.gids.slice(1));

/** Resolves when the tool has said that it runs. */
const started = async (guest: GuestProcess, count = 1) => {
  while (toolPids(guest).length < count) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('start', () => {
  it('speaks the wire of this kernel, with the sandbox token, and needs two requests', async () => {
    expect(GUEST_WIRE_VERSION).toBe(WIRE_VERSION);
    await using guest = await startGuest();
    expect(guest.membrane.requests).toEqual([
      { operation: 'hello', token: SANDBOX_TOKEN, body: { wire: WIRE_VERSION, guest: expect.stringMatching(/^[0-9a-f]{64}$/) } },
      { operation: 'control', token: SANDBOX_TOKEN, body: undefined },
    ]);
    expect(guest.membrane.connections).toBe(1);
  });

  it('W20 closes what it inherited, and no tool gets it or the token', async () => {
    const leak = [17, 40];
    const lists = "require('node:child_process').spawnSync('ls', ['/proc/self/fd'], { stdio: ['ignore', 1, 2] })";
    const [program = '', ...args] = leaking(leak, [process.execPath, '-e', lists]);
    expect(spawnSync(program, args, { encoding: 'utf8' }).stdout.trim().split('\n')).toContain('40'); // Control: what Node alone would pass on.
    await using guest = await startGuest({ leak });
    const { exec } = await guest.membrane.exec('run_1', { argv: ['ls', '/proc/self/fd'] });
    expect(exec?.stdout).toBe('0\n1\n2\n3\n');
    const open = readdirSync(`/proc/${guest.child.pid}/fd`).map((fd) => readlink(`/proc/${guest.child.pid}/fd/${fd}`));
    expect(open.filter((target) => target === '/etc/hostname' || target.startsWith(guest.dir))).toEqual([]);
    expect(
      readFileSync(`/proc/${guest.child.pid}/environ`, 'utf8') + readFileSync(`/proc/${guest.child.pid}/cmdline`, 'utf8'),
    ).not.toContain(SANDBOX_TOKEN);
  });

  it('ends with 1 when hello is refused', async () => {
    await using guest = await spawnGuest({
      answers: { hello: () => ({ status: 403, body: { error: { code: 'wire_version', message: 'no' } } }) },
    });
    expect(await guest.exitCode).toBe(1);
    expect(guest.stderr()).toContain('no');
    expect(guest.membrane.requestsOf('control')).toEqual([]);
  });

  it('ends with 2 when it is started wrongly, naming what is wrong', async () => {
    await using guest = await spawnGuest({ env: { OUTWORK_GIDS: '2000' } });
    expect(await guest.exitCode).toBe(2);
    expect(guest.stderr()).toContain('OUTWORK_GIDS');
  });
});

const readlink = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};

describe('the control stream', () => {
  it('is opened again when it ends while the kernel still listens', async () => {
    await using guest = await startGuest();
    await guest.membrane.dropControl();
    expect(guest.membrane.controls).toBe(2);
    expect((await guest.membrane.exec('run_1', { argv: ['true'] })).exec).toMatchObject({ exitCode: 0 });
  });

  it('ends the guest when the kernel is gone', async () => {
    const guest = await startGuest();
    rmSync(guest.membrane.socketPath);
    await guest.membrane[Symbol.asyncDispose]();
    expect(await guest.exitCode).toBe(0);
    await guest[Symbol.asyncDispose]();
  });

  it('survives a message it does not know', async () => {
    await using guest = await startGuest();
    guest.membrane.sendLine('{"type":"from a later kernel"}');
    expect((await guest.membrane.exec('run_1', { argv: ['true'] })).exec).toMatchObject({ exitCode: 0 });
  });
});

describe('a run', () => {
  it('X1 works through the membrane to its claim; a permit is carried out and closed in between', async () => {
    const kernel = kernelOf('survey');
    await using guest = await startGuest({ answers: { call: kernel.call } });
    const setup = 'git init -q repo && cd repo && echo hi > a.txt && git add . && git -c user.name=n -c user.email=e@x commit -qm first';
    expect((await guest.membrane.exec('run_0', { argv: ['sh', '-c', setup] })).exec).toMatchObject({ exitCode: 0 });
    guest.membrane.send(runMessage('run_1'));
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'completed' });
    expect(kernel.posted).toEqual([
      expect.stringMatching(/^The repository has 1 tracked files; its latest commit is "\w+ first"\. .* I read 3 bytes of a\.txt\./),
    ]);
    expect(guest.membrane.requestsOf('call').filter(({ body }) => (body as CallRequest).capability === 'model.generate')).toHaveLength(6);
    expect(guest.membrane.requestsOf('permit.close')).toHaveLength(5);
    expect(new Set(guest.membrane.requests.slice(2).map(({ operation, token }) => `${operation === 'control.reply'} ${token}`))).toEqual(
      new Set([`true ${SANDBOX_TOKEN}`, 'false token-run_1']),
    );
    expect(guest.membrane.faults).toEqual([]);
  });

  it('holds a command to the bounds of its permit', async () => {
    const kernel = kernelOf('kill-once', { timeoutMs: 30 });
    await using guest = await startGuest({ answers: { call: kernel.call } });
    guest.membrane.send(runMessage('run_1'));
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'completed' });
    expect(guest.membrane.requestsOf('permit.close')[0]?.body).toMatchObject({
      permit: 'prm_1',
      outcome: { timedOut: true, exitCode: null },
    });
  });

  it('X3 ends when it is cancelled: its command is killed, its permit closed, the claim says so', async () => {
    const kernel = kernelOf('kill-once');
    await using guest = await startGuest({ answers: { call: kernel.call } });
    guest.membrane.send(runMessage('run_1'));
    await started(guest);
    guest.membrane.send({ type: 'cancel', run: 'run_1' });
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'cancelled' });
    expect(guest.membrane.requestsOf('permit.close')[0]?.body).toMatchObject({ outcome: { signal: 'SIGKILL', timedOut: false } });
    expect(toolPids(guest)).toEqual([]);
  });

  it('X3 gives up a request that is not answered when it is cancelled', async () => {
    const asked = Promise.withResolvers<void>();
    await using guest = await startGuest({
      answers: {
        call: () => {
          asked.resolve();
          return new Promise<CallReply>(() => undefined);
        },
      },
    });
    guest.membrane.send(runMessage('run_1'));
    await asked.promise;
    guest.membrane.send({ type: 'cancel', run: 'run_1' });
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'cancelled' });
  });

  it('says nothing any more when it is forgotten; its processes end, those of another run go on', async () => {
    const kernel = kernelOf('kill-once');
    await using guest = await startGuest({ answers: { call: kernel.call } });
    guest.membrane.send(runMessage('run_1'));
    await started(guest);
    const other = guest.membrane.exec('run_2', { argv: ['sh', '-c', 'read go; echo "$go"'], stdin: '' });
    const mine = guest.membrane.exec('run_1', { argv: ['sleep', '60'] });
    await started(guest, 2);
    guest.membrane.send({ type: 'forget', run: 'run_1' });
    expect((await mine).exec).toMatchObject({ signal: 'SIGKILL' });
    expect((await other).exec).toMatchObject({ exitCode: 0 });
    expect((await guest.membrane.exec('run_3', { argv: ['true'] })).exec).toMatchObject({ exitCode: 0 });
    expect(toolPids(guest)).toEqual([]);
    expect(guest.membrane.requestsOf('exit')).toEqual([]);
  });

  it('runs beside others, each with its own token', async () => {
    const kernel = kernelOf('hello');
    await using guest = await startGuest({ answers: { call: kernel.call } });
    const runs = Array.from({ length: 20 }, (_, i) => `run_${i}`);
    for (const run of runs) guest.membrane.send(runMessage(run));
    expect(await Promise.all(runs.map((run) => guest.membrane.exited(`token-${run}`)))).toEqual(runs.map(() => ({ kind: 'completed' })));
    expect(guest.membrane.connections).toBeLessThanOrEqual(16);
    expect(kernel.posted).toHaveLength(20);
  });

  it('fails with its code when the kernel refuses, or the harness is none of ours', async () => {
    await using guest = await startGuest({
      answers: { call: () => Promise.reject(Object.assign(new Error('over'), { code: 'stale_fence' })) },
    });
    guest.membrane.send(runMessage('run_1'));
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'failed', code: 'stale_fence', message: 'over' });
    guest.membrane.send(runMessage('run_2', { harness: '../other' }));
    expect(await guest.membrane.exited('token-run_2')).toMatchObject({ kind: 'failed', code: 'harness_unknown' });
  });

  it('parks when a call parks', async () => {
    await using guest = await startGuest({
      answers: { call: () => ({ effect: 'parked', gate: { kind: 'approval', ref: 'cal_1', reason: 'ask' } }) },
    });
    guest.membrane.send(runMessage('run_1'));
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'parked' });
  });
});

describe('a background command', () => {
  it('answers at once with pid and log, survives its run, writes a log as the tool uid', async () => {
    const kernel = kernelOf('background');
    await using guest = await startGuest({ answers: { call: kernel.call } });
    guest.membrane.send(runMessage('run_1'));
    expect(await guest.membrane.exited('token-run_1')).toEqual({ kind: 'completed' });
    const [, pid, log] = /^Background process (\d+): alive\. Log: (\S+)$/.exec(kernel.posted[0] ?? '') ?? [];
    guest.membrane.send({ type: 'forget', run: 'run_1' });
    const look = await guest.membrane.exec('run_2', {
      argv: ['sh', '-c', `while ! grep -q started ${log}; do sleep 0.01; done; kill -0 ${pid} && stat -c %u ${log}`],
    });
    expect(look.exec).toMatchObject({ exitCode: 0, stdout: `${guest.toolUid}\n` });
    expect(readdirSync(`${guest.privateDir}/background`)).toHaveLength(1);
  });

  it('is bounded in log and number, keeps its gid until it has ended, and says how it ended', async () => {
    await using guest = await startGuest();
    const noisy = await guest.membrane.exec('run_1', { argv: ['sh', '-c', 'head -c 3000000 /dev/zero; exit 7'], background: true });
    const log = noisy.exec?.background?.log ?? '';
    const waited = await guest.membrane.exec('run_1', {
      argv: ['sh', '-c', `while ! grep -aq "exit code 7" ${log}; do sleep 0.01; done; stat -c %s ${log}`],
    });
    expect(Number(waited.exec?.stdout)).toBeLessThan(1_049_000);
    const replies = [];
    for (let i = 0; i < 17; i += 1) replies.push(await guest.membrane.exec('run_1', { argv: ['sleep', '60'], background: true }));
    expect(replies.filter(({ exec }) => exec?.background !== undefined)).toHaveLength(16);
    expect(replies.at(-1)?.error).toMatchObject({ code: 'background_limit' });
    const pids = replies.flatMap(({ exec }) => exec?.background?.pid ?? []);
    await guest.membrane.exec('run_1', { argv: ['kill', '-9', ...pids.map(String)] });
    expect((await guest.membrane.exec('run_1', { argv: ['true'], background: true })).exec?.background).toBeDefined();
  });

  it('that cannot start is no background command', async () => {
    await using guest = await startGuest();
    expect((await guest.membrane.exec('run_1', { argv: ['no-such-program'], background: true })).exec).toMatchObject({ exitCode: 127 });
  });
});
