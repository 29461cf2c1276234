import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Run } from '../../core/run/types.ts';
import { CliWorld } from './cli-world.ts';

let world: CliWorld;
beforeEach(() => {
  world = new CliWorld();
});
afterEach(() => world[Symbol.dispose]());

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1);

describe('grammar', () => {
  it.each([
    [['frobnicate']],
    [['run', 'hi']],
    [['run', '--user', 'ann']],
    [['run', '--user', 'Ann B', 'hi']],
    [['run', '--user', 'ann', '--placement', 'nowhere', 'hi']],
    [['run', '--user', 'ann', '--thread', 'run_00000000000000000000000000', 'hi']],
    [['run', '--user', 'ann', 'one', 'two']],
    [['runs', 'show']],
    [['runs', 'show', 'x']],
    [['runs', 'ls', '--limit', '0']],
    [['runs', 'ls', '--limit', '1e3']],
    [['runs', 'ls', '--in', 'sleeping']],
    [['runs', 'resolve', 'run_00000000000000000000000000']],
    [['runs', 'resolve', 'run_00000000000000000000000000', '--as', 'maybe']],
    [['user', 'token', 'ann', '--ttl', '12']],
    [['events', 'tail', '--from', '-1']],
    [['doctor', '--unknown']],
    [['runs']],
    [[]],
  ])('%j is a usage error: exit 2, one document with --json, standard error without', async (args) => {
    const plain = await world.run(...args);
    expect(plain).toMatchObject({ code: 2, stdout: '' });
    expect(plain.stderr).toMatch(/^error: |^Usage: /);
    const { code, document, stderr } = await world.json(...args);
    expect(code).toBe(2);
    expect(document).toMatchObject({ error: { code: 'usage', message: expect.any(String), hint: expect.any(String) } });
    expect(stderr).toBe('');
  });

  it('help and version are results: standard output, exit 0', async () => {
    for (const args of [['--help'], ['run', '--help'], ['runs', '--help'], ['--version']]) {
      expect(await world.run(...args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/./) });
    }
    expect((await world.run('runs', 'ls', '--help')).stdout).toContain('--json');
  });

  it('every command takes --json, --state and --config, before or behind its own words', async () => {
    for (const args of [
      ['--json', 'user', 'ls'],
      ['user', '--json', 'ls'],
      ['user', 'ls', '--json', '--state', join(world.dir, 'other')],
    ]) {
      expect(JSON.parse((await world.run(...args)).stdout)).toEqual([]);
    }
  });

  it('a message that looks like an option comes behind --', async () => {
    await world.run('user', 'add', 'ann');
    expect(await world.run('run', '--user', 'ann', '--', '--json')).toMatchObject({ code: 0, stdout: 'reply: --json\n' });
  });
});

describe('rows', () => {
  it('users are made, listed and given tokens', async () => {
    expect(await world.run('user', 'add', 'ann')).toMatchObject({ code: 0, stdout: 'default/ann added\n' });
    expect(await world.json('user', 'add', 'bob', '--tenant', 'acme', '--role', 'user,approver')).toMatchObject({
      code: 0,
      document: { tenant: 'acme', name: 'bob', roles: ['user', 'approver'] },
    });
    expect((await world.json('user', 'ls')).document).toHaveLength(2);
    expect((await world.json('user', 'ls', '--tenant', 'acme')).document).toHaveLength(1);
    const token = await world.run('user', 'token', 'ann', '--ttl', '1h');
    expect(token).toMatchObject({ code: 0, stdout: 'owt_test\n' });
    expect(token.stderr).toContain('not shown again');
  });

  it('what does not exist, or exists already, is exit 2 with its code', async () => {
    await world.run('user', 'add', 'ann');
    expect(await world.json('user', 'add', 'ann')).toMatchObject({ code: 2, document: { error: { code: 'conflict' } } });
    const nobody = ['thread', 'show', 'thr_00000000000000000000000000'];
    expect(await world.json(...nobody)).toMatchObject({ code: 2, document: { error: { code: 'not_found' } } });
  });

  it('runs, threads and events are listed and shown', async () => {
    await world.run('user', 'add', 'ann');
    const { document } = await world.json('run', '--user', 'ann', 'hi');
    const { run, thread } = document as { run: Run; thread: string };
    expect((await world.run('runs', 'ls')).stdout).toContain(run.id);
    expect((await world.json('runs', 'ls', '--in', 'completed,failed')).document).toHaveLength(1);
    expect((await world.run('runs', 'ls')).stdout).toMatch(/ host-loop-shell +\d{4}-/);
    expect((await world.json('runs', 'ls', '--in', 'queued')).document).toHaveLength(0);
    expect((await world.run('runs', 'show', run.id)).stdout).toMatch(/^next {2,}nothing/m);
    expect((await world.json('runs', 'show', run.id)).document).toMatchObject({ run: { id: run.id, state: 'completed' } });
    expect((await world.run('thread', 'ls')).stdout).toContain(thread);
    expect((await world.run('thread', 'show', thread)).stdout).toMatch(/#1 ann .*\nhi\n#2 agent for ann .*\nreply: hi\n/);
    const tail = await world.run('events', 'tail', '--no-follow', '--json', '--thread', thread);
    const events = tail.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    expect(events.map(({ type }) => type)).toEqual(['message.posted', 'run.queued', 'run.claimed', 'run.completed']);
  });

  it('an empty list is an empty document, and words on standard error', async () => {
    expect(await world.run('runs', 'ls')).toMatchObject({ code: 0, stdout: '', stderr: 'no runs\n' });
    expect(await world.json('runs', 'ls')).toMatchObject({ code: 0, document: [], stderr: '' });
  });

  it('text of a user or a model moves no terminal', async () => {
    await world.run('user', 'add', 'ann');
    const hostile = '\u001b]0;owned\u0007\u009b2J';
    const { stdout, stderr } = await world.run('run', '--user', 'ann', hostile);
    const { document } = await world.json('thread', 'ls');
    const [{ id }] = document as [{ id: string }];
    const shown = await world.run('thread', 'show', id);
    for (const text of [stdout, stderr, shown.stdout]) expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    expect(stdout).toContain('owned');
  });
});

describe('config', () => {
  it('show names every value and its source; check is exit 4 on a bad file, and every fault is named', async () => {
    writeFileSync(join(world.dir, 'outwork.yaml'), 'placement: persistent-per-user\n');
    const { document } = await world.json('config', 'show');
    expect(document).toMatchObject({
      config: { placement: 'persistent-per-user' },
      sources: { placement: 'file', engine: 'default' },
    });
    expect((await world.run('config', 'show')).stdout).toMatch(/placement +persistent-per-user +file/);
    expect((await world.json('config', 'check')).document).toMatchObject({ ok: true });
    writeFileSync(join(world.dir, 'outwork.yaml'), 'placment: x\nengine: y\n');
    for (const args of [
      ['config', 'check'],
      ['config', 'show'],
      ['runs', 'ls'],
      ['run', '--user', 'ann', 'hi'],
    ]) {
      const bad = await world.json(...args);
      expect(bad).toMatchObject({ code: 4, document: { error: { code: 'config_malformed' } } });
      expect(JSON.stringify(bad.document)).toMatch(/placment: unknown key.*engine:|engine:.*placment: unknown key/);
    }
  });

  it.each([
    ['model: {scenario: nope}', 'model.scenario: there is no scenario nope'],
    ['model: {scenario: ./bad.json}', 'model.scenario: '],
    ['model: {scenario: ./absent.json}', 'model.scenario: no scenario can be read'],
    ['policy: {dir: absent}', 'policy.dir: '],
    ['policy: {publicKey: absent}', 'policy.publicKey: '],
  ])('check reads what the file names: %s', async (text, fault) => {
    const file = join(world.dir, 'outwork.yaml');
    writeFileSync(join(world.dir, 'bad.json'), '{"name": "bad", "steps": 3}');
    writeFileSync(file, text);
    expect(await world.json('config', 'check')).toMatchObject({
      code: 4,
      document: { error: { code: 'config_unreadable', message: expect.stringContaining(`${file}: ${fault}`) } },
    });
  });

  it('control: a scenario that is right, beside the file, is good; rules of one’s own that are not built yet are a warning', async () => {
    copyFileSync(join(import.meta.dirname, '../../harnesses/scripted/scenarios/hello.json'), join(world.dir, 'mine.json'));
    writeFileSync(join(world.dir, 'outwork.yaml'), 'model: {scenario: ./mine.json}\npolicies: {dir: rules}\n');
    expect(await world.json('config', 'check')).toMatchObject({
      code: 0,
      document: { warnings: [expect.stringContaining('outwork policy build')] },
    });
  });

  it('a state directory that is open to others is exit 3, with the command that closes it', async () => {
    const dir = join(world.dir, 'open');
    mkdirSync(dir);
    chmodSync(dir, 0o755);
    expect(await world.json('runs', 'ls', '--state', dir)).toMatchObject({
      code: 3,
      document: { error: { code: 'state_directory_unusable', hint: `chmod 700 ${dir}` } },
    });
  });
});

describe('run', () => {
  beforeEach(() => world.run('user', 'add', 'ann'));

  it('prints the reply on standard output and the progress on standard error', async () => {
    const { code, stdout, stderr } = await world.run('run', '--user', 'ann', 'hello there');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'reply: hello there\n' });
    expect(stderr).toMatch(/run\.claimed[\s\S]*run\.completed/);
  });

  it('with --json prints one document with run, thread, reply and gate', async () => {
    const { code, document } = await world.json('run', '--user', 'ann', '--placement', 'disposable-per-run', 'hello');
    expect(code).toBe(0);
    expect(document).toMatchObject({ run: { state: 'completed', placement: 'disposable-per-run' }, reply: 'reply: hello', gate: null });
  });

  it('goes on with a thread, and takes the message from standard input', async () => {
    const { document } = await world.json('run', '--user', 'ann', 'one');
    const { thread } = document as { thread: string };
    world.stdin = 'two\nlines';
    expect((await world.run('run', '--user', 'ann', '--thread', thread, '-')).stdout).toBe('reply: two\nlines\n');
    expect((await world.json('thread', 'show', thread)).document).toMatchObject({ messages: { length: 4 } });
  });

  it('a user that does not exist is exit 2, with the command that makes it', async () => {
    expect(await world.json('run', '--user', 'bob', '--tenant', 'acme', 'hi')).toMatchObject({
      code: 2,
      document: { error: { code: 'not_found', hint: 'outwork user add bob --tenant acme' } },
    });
  });

  it('a failed run is exit 1', async () => {
    const { code, stderr } = await world.run('run', '--user', 'ann', 'fail');
    expect(code).toBe(1);
    expect(lastLine(stderr)).toBe('failed: harness_unknown');
  });

  it('a parked run is exit 5 with kind and id of the gate on the last line, and resolve ends it', async () => {
    const { code, stderr } = await world.run('run', '--user', 'ann', 'park');
    expect(code).toBe(5);
    expect(lastLine(stderr)).toMatch(/^parked: unknown cal_[0-9a-z]{26}$/);
    const [{ id }] = (await world.json('runs', 'ls', '--in', 'parked')).document as [Run];
    expect((await world.run('runs', 'show', id)).stdout).toMatch(/^next +a person resolves the call$/m);
    expect(await world.json('runs', 'resolve', id, '--as', 'not-done')).toMatchObject({ code: 0, document: { state: 'queued' } });
    expect(await world.json('runs', 'resolve', id, '--as', 'done')).toMatchObject({ code: 2, document: { error: { code: 'conflict' } } });
  });

  it('with --json a parked run is exit 5, its gate in the document and on the last line of standard error', async () => {
    const { code, document, stderr } = await world.json('run', '--user', 'ann', 'park');
    expect(code).toBe(5);
    expect(document).toMatchObject({
      run: { state: 'parked' },
      gate: { kind: 'unknown', ref: expect.stringMatching(/^cal_/) },
      reply: null,
    });
    expect(lastLine(stderr)).toMatch(/^parked: unknown cal_/);
  });

  it('with --wait it stays through the gate while another terminal resolves it', async () => {
    const running = world.start('run', '--user', 'ann', '--wait', 'park');
    await running.prints('run.parked');
    const [{ id }] = (await world.json('runs', 'ls')).document as [Run];
    await world.run('runs', 'resolve', id, '--as', 'not-done');
    expect(await running.result).toMatchObject({ code: 0, stdout: 'reply: park\n' });
  });

  it('interrupted once it cancels the run and ends with 130 when the run has ended', async () => {
    const running = world.start('run', '--user', 'ann', 'hang');
    await running.prints('run.claimed');
    running.interrupt();
    const { code, stderr } = await running.result;
    expect(code).toBe(130);
    expect(stderr).toMatch(/run\.cancelled[\s\S]*cancelled/);
    expect(running.exits).toEqual([]);
    expect((await world.json('runs', 'ls', '--in', 'cancelled')).document).toHaveLength(1);
  });

  it('interrupted twice it leaves at once', async () => {
    const running = world.start('run', '--user', 'ann', 'hang');
    await running.prints('run.claimed');
    // The first one finds a kernel that does not answer any more.
    world.kernel.cancelRun = () => new Promise(() => undefined);
    running.interrupt();
    expect(running.exits).toEqual([]);
    running.interrupt();
    expect(running.exits).toEqual([130]);
  });

  it('while it runs, other terminals reach its kernel: show, cancel, tail', async () => {
    const running = world.start('run', '--user', 'ann', 'hang');
    await running.prints('run.claimed');
    const tail = world.start('events', 'tail', '--json');
    await tail.prints('run.claimed');
    const [{ id }] = (await world.json('runs', 'ls')).document as [Run];
    expect((await world.json('runs', 'show', id)).document).toMatchObject({ run: { state: 'running' } });
    expect((await world.json('runs', 'cancel', id)).code).toBe(0);
    expect((await running.result).code).toBe(1);
    await tail.prints('run.cancelled');
    tail.interrupt();
    expect((await tail.result).code).toBe(130);
  });

  it('a second run shares the kernel of the first, and goes on by itself when that one ends', async () => {
    const first = world.start('run', '--user', 'ann', 'hang');
    await first.prints('run.claimed');
    const second = world.start('run', '--user', 'ann', 'hang');
    await second.prints('run.claimed');
    first.interrupt();
    expect((await first.result).code).toBe(130);
    await second.prints('going on in this process');
    second.interrupt();
    expect((await second.result).code).toBe(130);
  });

  it('refuses --scenario when the kernel that runs has its own', async () => {
    const first = world.start('run', '--user', 'ann', 'hang');
    await first.prints('run.claimed');
    expect(await world.json('run', '--user', 'ann', '--scenario', 'survey', 'hi')).toMatchObject({
      code: 2,
      document: { error: { code: 'conflict' } },
    });
    first.interrupt();
    await first.result;
  });
});

describe('events tail', () => {
  it('ends quietly with 0 when its reader goes', async () => {
    await world.run('user', 'add', 'ann');
    const tail = world.start('events', 'tail');
    await tail.prints('user.added');
    tail.closeStdout();
    expect(await tail.result).toMatchObject({ code: 0, stderr: '' });
  });

  it('holds no state directory while no kernel runs, and goes on when one appears', async () => {
    await world.run('user', 'add', 'ann');
    const tail = world.start('events', 'tail');
    await tail.prints('user.added');
    // Would be refused if the tail held the directory.
    const running = world.start('run', '--user', 'ann', 'hang');
    await running.prints('run.claimed');
    await tail.prints('run.claimed');
    running.interrupt();
    await running.result;
    tail.interrupt();
    expect((await tail.result).code).toBe(130);
  });
});

it('a group that is named alone prints its help, and is a usage error all the same', async () => {
  for (const [args, head] of [
    [[], 'Usage: outwork [options] [command]\n'],
    [['runs'], 'Usage: outwork runs [options] [command]\n'],
  ] as const) {
    const { code, stdout, stderr } = await world.run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.startsWith(head)).toBe(true);
  }
  expect(await world.json('runs')).toMatchObject({ code: 2, document: { error: { code: 'usage', hint: 'name one of the commands' } } });
});

it('an event takes one line of a narrow terminal, and is whole in a pipe', async () => {
  await world.run('user', 'add', 'ann', '--role', 'user,approver,operator,policy');
  const tail = async () => (await world.run('events', 'tail', '--no-follow')).stdout;
  expect(await tail()).toContain('name=ann');
  world.columns = 32;
  world.env.NO_COLOR = '1';
  const lines = (await tail()).trimEnd().split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(32);
  expect(lines[0]).toMatch(/user\.added name=…$/);
});

it('a narrow terminal gets blocks instead of wrapped rows', async () => {
  await world.run('user', 'add', 'ann');
  world.columns = 40;
  world.env.NO_COLOR = '1';
  const { stdout } = await world.run('user', 'ls');
  expect(stdout).toMatch(/^TENANT: default\nUSER: ann\n/);
});
