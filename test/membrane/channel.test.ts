import { once } from 'node:events';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommandOutcome } from '../../core/capability/types.ts';
import type { ToolCommand } from '../../core/ports/placement.ts';
import type { ControlReply } from '../../core/wire/protocol.ts';
import { GOOD_BODIES, GUEST, openControl, openRequest, send, startMembrane, type TestMembrane, type TestSandbox } from './harness.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';

let clock: ManualClock;
let started: TestMembrane;
let sandbox: TestSandbox;
beforeEach(async () => {
  clock = manualClock();
  started = await startMembrane({ clock, limits: { streamBytes: 1024 * 1024 } });
  sandbox = await started.openSandbox('ada');
});
afterEach(() => started[Symbol.asyncDispose]());

const never = new AbortController().signal;
const command: ToolCommand = { argv: ['ls', '-l'], timeoutMs: 10_000, outputBytes: 1024 };
const outcome = (stdout: string): CommandOutcome => ({
  exitCode: 0,
  signal: null,
  timedOut: false,
  stdout,
  stderr: '',
  stdoutBytes: stdout.length,
  stderrBytes: 0,
  truncated: false,
  wallMs: 1.5,
});
const hello = (body: object) => send(sandbox.channel.socketPath, 'hello', { token: sandbox.sandboxToken, body });
const reply = (body: ControlReply) => send(sandbox.channel.socketPath, 'control.reply', { token: sandbox.sandboxToken, body });

describe('opening', () => {
  it('listens with a socket nobody but the kernel may use until the engine grants it', async () => {
    expect((await stat(sandbox.channel.socketPath)).mode & 0o777).toBe(0o600);
  });

  it('refuses a socket path longer than the bound and names what to do', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'm-'));
    const socketDir = join(dir, 'x'.repeat(100));
    await mkdir(socketDir);
    const opening = started.membrane.open({ tenant: 'acme', user: 'eve', generation: 'gen-eve', socketDir });
    await expect(opening).rejects.toMatchObject({ code: 'state_directory_unusable', hint: expect.stringContaining('--state') });
    await rm(dir, { recursive: true });
  });

  it('refuses a generation whose socket exists', async () => {
    const socketDir = join(sandbox.channel.socketPath, '..');
    const opening = started.membrane.open({ tenant: 'acme', user: 'eve', generation: 'gen-eve', socketDir });
    await expect(opening).rejects.toMatchObject({ code: 'start_failed' });
  });
});

describe('hello and control', () => {
  it('is ready when the guest has said hello and holds its stream', async () => {
    const control = await openControl(sandbox);
    await sandbox.channel.ready;
    sandbox.channel.send({ type: 'run', run: 'run-ada', token: 't', harness: 'scripted', deadlineMs: 1 });
    expect(await control.next()).toEqual({ type: 'run', run: 'run-ada', token: 't', harness: 'scripted', deadlineMs: 1 });
    expect(sandbox.channel.counters.hostToSandbox).toBe(1);
  });

  it.each([
    ['another wire version', { wire: 2, guest: GUEST }],
    ['another guest', { wire: 1, guest: 'b'.repeat(64) }],
  ])('refuses %s, and with it the stream', async (_name, body) => {
    expect(await hello(body)).toMatchObject({ status: 426, json: { error: { code: 'wire_version' } } });
    const control = await send(sandbox.channel.socketPath, 'control', { token: sandbox.sandboxToken });
    expect(control.json.error.code).toBe('wire_version');
    expect(started.service.refusals.map(({ operation }) => operation)).toEqual(['hello', 'control']);
  });

  it('admits one stream at a time, and none after its end', async () => {
    const control = await openControl(sandbox);
    const second = () => send(sandbox.channel.socketPath, 'control', { token: sandbox.sandboxToken });
    expect((await second()).json.error.code).toBe('conflict');
    sandbox.channel.send({ type: 'ping' });
    expect(await control.next()).toEqual({ type: 'ping' });
    control.socket.destroy();
    await sandbox.channel.lost;
    expect((await second()).json.error.code).toBe('closed');
  });

  it('pings, and does not count pings as messages', async () => {
    const control = await openControl(sandbox);
    clock.advance(15_000);
    expect(await control.next()).toEqual({ type: 'ping' });
    clock.advance(15_000);
    expect(await control.next()).toEqual({ type: 'ping' });
    expect(sandbox.channel.counters.hostToSandbox).toBe(0);
  });

  it('send before the stream is there throws guest_lost', () => {
    expect(() => sandbox.channel.send({ type: 'cancel', run: 'run-ada' })).toThrow(expect.objectContaining({ code: 'guest_lost' }));
  });
});

describe('a guest that does not read', () => {
  const large = { type: 'cancel', run: 'r'.repeat(100_000) } as const;

  it('is cut when more than the bound waits for it', async () => {
    const control = await openControl(sandbox);
    control.socket.pause();
    let sent = 0;
    const flood = () => {
      for (; sent < 100; sent += 1) sandbox.channel.send(large);
    };
    expect(flood).toThrow(expect.objectContaining({ code: 'guest_lost' }));
    await sandbox.channel.lost;
    // What the socket's own buffers take comes on top of the bound.
    expect(sent * 100_000).toBeLessThan(3 * 1024 * 1024);
  });

  it('is cut when it takes nothing for a while, though little waits', async () => {
    const control = await openControl(sandbox);
    control.socket.pause();
    // More than a unix socket buffers, less than the bound.
    for (let i = 0; i < 4; i += 1) sandbox.channel.send(large);
    clock.advance(60_000);
    await sandbox.channel.lost;
  });

  it('loses a call.stream for which more than the bound waits; the call itself goes on to its end', async () => {
    const ended = Promise.withResolvers<void>();
    started.service.onCall = async (_body, onDelta) => {
      for (let i = 0; i < 100; i += 1) onDelta?.('d'.repeat(100_000));
      ended.resolve();
      return { effect: 'done', result: null, replayed: false };
    };
    const stream = send(sandbox.channel.socketPath, 'call.stream', { token: sandbox.runToken, body: GOOD_BODIES['call.stream'] });
    await expect(stream).rejects.toMatchObject({ code: 'ECONNRESET' });
    await ended.promise;
  });

  it('control: a call.stream that stays within the bound arrives whole', async () => {
    started.service.onCall = async (_body, onDelta) => {
      for (let i = 0; i < 9; i += 1) onDelta?.('d'.repeat(100_000));
      return { effect: 'done', result: null, replayed: false };
    };
    const answer = await send(sandbox.channel.socketPath, 'call.stream', { token: sandbox.runToken, body: GOOD_BODIES['call.stream'] });
    expect(answer.text.trimEnd().split('\n')).toHaveLength(10);
  });

  it('control: one that reads gets the same messages and keeps its stream', async () => {
    const control = await openControl(sandbox);
    for (let i = 0; i < 100; i += 1) {
      sandbox.channel.send(large);
      expect((await control.next()).run).toHaveLength(100_000);
    }
    for (let i = 0; i < 4; i += 1) {
      clock.advance(15_000);
      expect(await control.next()).toEqual({ type: 'ping' });
    }
  });
});

describe('exec and file', () => {
  it('match each reply to its question by id, in any order', async () => {
    const control = await openControl(sandbox);
    const first = sandbox.channel.exec('run-ada', command, never);
    const second = sandbox.channel.file({ op: 'list', path: '.', maxEntries: 10 }, never);
    const [asked, listed] = [await control.next(), await control.next()];
    expect(asked).toMatchObject({ type: 'exec', run: 'run-ada', command });
    expect(listed).toMatchObject({ type: 'file', operation: { op: 'list' } });
    await reply({ id: listed.id, file: { op: 'list', entries: [], truncated: false } });
    await reply({ id: asked.id, exec: outcome('hi') });
    expect(await first).toEqual(outcome('hi'));
    expect(await second).toEqual({ op: 'list', entries: [], truncated: false });
    expect(clock.timers).toBe(1);
  });

  it.each([
    ['path_outside_workspace', 'path_outside_workspace'],
    ['some_code_of_its_own', 'start_failed'],
  ])('a guest that answers %s makes it reject with %s', async (code, expected) => {
    const control = await openControl(sandbox);
    const read = sandbox.channel.file({ op: 'read', path: '../x', maxBytes: 1 }, never);
    const failed = expect(read).rejects.toMatchObject({ code: expected });
    await reply({ id: (await control.next()).id, error: { code, message: 'no' } });
    await failed;
  });

  it('a reply of the wrong kind is refused and settles nothing', async () => {
    const control = await openControl(sandbox);
    const running = sandbox.channel.exec('run-ada', command, never);
    const { id } = await control.next();
    expect((await reply({ id, file: { op: 'write', size: 1 } })).json.error.code).toBe('malformed');
    expect((await send(sandbox.channel.socketPath, 'control.reply', { token: sandbox.sandboxToken, body: { id } })).status).toBe(400);
    await reply({ id, exec: outcome('late but right') });
    expect((await running).stdout).toBe('late but right');
    expect(started.service.refusals.map(({ code }) => code)).toEqual(['malformed', 'malformed']);
  });

  it("another sandbox cannot answer in this one's name", async () => {
    const other = await started.openSandbox('bob');
    const control = await openControl(sandbox);
    const running = sandbox.channel.exec('run-ada', command, never);
    const { id } = await control.next();
    await send(other.channel.socketPath, 'control.reply', { token: other.sandboxToken, body: { id, exec: outcome('forged') } });
    await reply({ id, exec: outcome('true') });
    expect((await running).stdout).toBe('true');
  });

  it('reject with guest_lost when the stream ends', async () => {
    const control = await openControl(sandbox);
    const running = sandbox.channel.exec('run-ada', command, never);
    const failed = expect(running).rejects.toMatchObject({ code: 'guest_lost' });
    await control.next();
    control.socket.destroy();
    await failed;
    await expect(sandbox.channel.exec('run-ada', command, never)).rejects.toMatchObject({ code: 'guest_lost' });
    expect(clock.timers).toBe(0);
  });

  it('an abort sends exec.cancel and takes the outcome of the ended command', async () => {
    const control = await openControl(sandbox);
    const abort = new AbortController();
    const running = sandbox.channel.exec('run-ada', command, abort.signal);
    const { id } = await control.next();
    abort.abort();
    expect(await control.next()).toEqual({ type: 'exec.cancel', id });
    await reply({ id, exec: { ...outcome(''), exitCode: null, signal: 'SIGKILL' } });
    expect(await running).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
  });

  it('a guest that ignores the cancel is waited for no longer than the grace', async () => {
    const control = await openControl(sandbox);
    const abort = new AbortController();
    const running = sandbox.channel.exec('run-ada', command, abort.signal);
    const failed = expect(running).rejects.toMatchObject({ code: 'guest_lost' });
    const { id } = await control.next();
    abort.abort();
    clock.advance(5_000);
    await failed;
    // Its answer comes too late to matter, and is no fault.
    expect((await reply({ id, exec: outcome('') })).status).toBe(200);
  });

  it("a guest that outlasts the command's own timeout is told to stop, then given up", async () => {
    const control = await openControl(sandbox);
    const running = sandbox.channel.exec('run-ada', command, never);
    const failed = expect(running).rejects.toMatchObject({ code: 'guest_lost' });
    const { id } = await control.next();
    clock.advance(command.timeoutMs + 5_000);
    // Timers that were due at once: the ping may come first.
    const messages = [await control.next(), await control.next()];
    expect(messages).toContainEqual({ type: 'exec.cancel', id });
    clock.advance(5_000);
    await failed;
  });

  it('an aborted signal asks the guest nothing', async () => {
    await openControl(sandbox);
    await expect(sandbox.channel.exec('run-ada', command, AbortSignal.abort())).rejects.toMatchObject({ code: 'timeout' });
    expect(sandbox.channel.counters.hostToSandbox).toBe(0);
  });
});

describe('close', () => {
  it('ends the listener, idle connections, waiting requests, and streams that were taken over', async () => {
    const control = await openControl(sandbox);
    started.service.onCall = () => new Promise(() => undefined);
    const idle = connect(sandbox.channel.socketPath);
    await once(idle, 'connect');
    const hanging = openRequest(sandbox.channel.socketPath, 'call', { token: sandbox.runToken, body: GOOD_BODIES.call });
    const broken = once(hanging, 'error');
    const steer = await send(sandbox.channel.socketPath, 'steer.next', { token: sandbox.runToken, body: { afterSeq: 0 } });
    expect(steer.status).toBe(200);
    const idleClosed = once(idle, 'close');
    await sandbox.channel.close();
    await Promise.all([control.ended, broken, idleClosed, sandbox.channel.lost]);
    expect(sandbox.channel.counters.connections).toBe(0);
    const again = connect(sandbox.channel.socketPath);
    const [refused] = await once(again, 'error');
    expect(['ENOENT', 'ECONNREFUSED']).toContain(refused.code);
  });

  it('rejects ready when no guest ever came, and ends the tokens of the sandbox', async () => {
    const failed = expect(sandbox.channel.ready).rejects.toMatchObject({ code: 'guest_lost' });
    await sandbox.channel.close();
    await failed;
    expect(await started.tokens.verify(sandbox.sandboxToken)).toBeUndefined();
    expect(await started.tokens.verify(sandbox.runToken)).toBeUndefined();
  });

  it('leaves other sandboxes alone', async () => {
    const other = await started.openSandbox('bob');
    await sandbox.channel.close();
    const answer = await send(other.channel.socketPath, 'call', { token: other.runToken, body: GOOD_BODIES.call });
    expect(answer.status).toBe(200);
  });
});
