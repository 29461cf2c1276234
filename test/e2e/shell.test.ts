import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RecordedCommand } from '../../core/capability/types.ts';
import type { Json } from '../../core/json.ts';
import type { RunView } from '../../core/kernel.ts';
import { CEILINGS } from '../../core/limits.ts';
import { PLACEMENTS } from '../../core/run/types.ts';
import { commandsOf, type E2e, e2e, scenario, workload } from '../support/e2e.ts';
import { HEADLESS } from '../support/headless.ts';

const sh = (script: string, more: { readonly [name: string]: Json } = {}) => ({
  tool: 'shell',
  args: { argv: ['sh', '-c', script], ...more },
});

/** Results of all tool calls of a run, in order. */
const resultsOf = (view: RunView): { [name: string]: Json }[] =>
  view.calls.flatMap(({ capability, outcome }) =>
    /^(shell|fs)\./.test(capability) && outcome?.kind === 'result' ? [outcome.result as { [name: string]: Json }] : [],
  );

/** Holds the results of commands and replies to more than the floor, and waits until the kernel runs on it. */
async function redactShapes(world: E2e): Promise<void> {
  const before = (await world.kernel.policyStatus()).digests.data;
  const file = join(world.policyDir, 'data', 'call.yaml');
  const terms = '{ exact: redact, shapes: redact }';
  const capabilities = ['shell.exec', 'shell.background', 'message.post'];
  const leaks = `leaks: { ${capabilities.map((name) => `${name}: ${terms}`).join(', ')} }`;
  writeFileSync(file, readFileSync(file, 'utf8').replace('leaks: {}', leaks));
  while ((await world.kernel.policyStatus()).digests.data === before) await world.kernel.eventsChanged(Number.MAX_SAFE_INTEGER - 1, 50);
}

/** Every byte that the kernel keeps of its own: no workspace, no HOME. */
function kernelBytes(stateDir: string): string {
  const own = readdirSync(stateDir).filter((name) => statSync(join(stateDir, name)).isFile());
  return own.map((name) => readFileSync(join(stateDir, name), 'latin1')).join('');
}

describe.each(PLACEMENTS)('sandbox review under %s', (placement) => {
  it('finding 1: file tools and shell of a user meet in the workspace of that user, whoever came first', async () => {
    const calls = [
      { tool: 'write_file', args: { path: 'by-tool', body: 'from the file tool' } },
      sh('cat by-tool; echo from the shell > by-shell; ls'),
      { tool: 'read_file', args: { path: 'by-shell' } },
      sh('ln -s /etc etc; ln -s .. up'),
      { tool: 'read_file', args: { path: 'etc/hostname' } },
      { tool: 'read_file', args: { path: 'up/by-shell' } },
    ];
    await using world = await e2e({ placement, scenario: workload(calls), users: ['ada', 'bo'] });
    for (const user of ['ada', 'bo']) {
      const view = await world.turn('go', { user });
      const [, shell, read] = resultsOf(view);
      expect(shell).toMatchObject({ stdout: expect.stringMatching(/^from the file tool.*by-shell\nby-tool\n$/s) });
      // Nothing of the other user: the list above is whole.
      expect(read).toMatchObject({ body: 'from the shell\n' });
      const refused = view.calls.filter(({ capability }) => capability === 'fs.read').slice(1);
      expect(refused.map(({ outcome }) => outcome?.kind === 'error' && outcome.code)).toEqual([
        'path_outside_workspace',
        'path_outside_workspace',
      ]);
    }
  });

  it('finding 2: a credential that a command prints reaches neither model, event, log nor disk', async () => {
    const token = ['ghp', 'q7Zk2VxT9mB4wNc8RdL5yHs3JfG6pKaE1u0o'].join('_');
    // Put together by the shell, so that the script itself holds none.
    const make = 'a=q7Zk2VxT9mB4; b=wNc8RdL5yHs3JfG6pKaE1u0o; t=ghp; t="$t"_"$a$b";';
    const calls = [
      sh(`${make} echo "out $t"; echo "err $t" >&2`),
      sh(`${make} echo "failing $t" >&2; exit 3`),
      sh(`${make} printf '%s' "\${t%o}"; sleep 0.05; echo o`),
      sh(`${make} head -c 5000 /dev/zero | tr '\\0' x; echo "$t"; head -c 5000 /dev/zero | tr '\\0' y`, { outputBytes: 1024 }),
      sh(`${make} printf 'gh\\033[0mp'; printf '%s\\n' "\${t#ghp}"`),
      sh(`${make} echo "background $t"; exec sleep 60`, { background: true, lifetimeMs: 60_000 }),
      sh('until grep -q background "$1"; do :; done; cat "$1"', {}),
      { tool: 'background', args: { op: 'tail', id: '{{result.5.0.background.id}}' } },
      sh(`${make} for i in 1 2 3; do echo "progress $t"; sleep 0.4; done`),
    ];
    calls[6] = {
      tool: 'shell',
      args: { argv: ['sh', '-c', 'until grep -q background "$1"; do :; done; cat "$1"', 'sh', '{{result.5.0.background.log}}'] },
    };
    const seen: string[] = [];
    await using world = await e2e({
      placement,
      scenario: workload(calls),
      onModel: async (request) => void seen.push(JSON.stringify(request)),
    });
    await redactShapes(world);
    const view = await world.turn('go');
    expect(view.run.state).toBe('completed');
    const results = resultsOf(view);
    expect(results[0]).toMatchObject({
      stdout: 'out [redacted]\n',
      stderr: 'err [redacted]\n',
      leaks: [{ name: 'github_token', count: 2 }],
    });
    expect(results[1]).toMatchObject({ exitCode: 3, stderr: 'failing [redacted]\n' });
    expect(results[2]).toMatchObject({ stdout: '[redacted]\n' });
    expect(results[4]).toMatchObject({ stdout: '[redacted]\n' });
    expect(results[6]).toMatchObject({ stdout: expect.stringContaining('background [redacted]') });
    expect(results[7]).toMatchObject({ text: 'background [redacted]\n' });
    const events = JSON.stringify(await world.kernel.events(0, { run: view.run.id }, 1000));
    expect(events).toContain('progress [redacted]');
    for (const sink of [...seen, events, JSON.stringify(view), kernelBytes(world.stateDir)]) {
      expect(sink.includes(token), sink.slice(0, 200)).toBe(false);
      expect(sink.includes(token.slice(4, 24)), 'half of it').toBe(false);
    }
  });

  it('finding 2 (control): without that policy a shape is told of and stays, in the same sinks', async () => {
    const seen: string[] = [];
    const calls = [sh('a=q7Zk2VxT9mB4; b=wNc8RdL5yHs3JfG6pKaE1u0o; t=ghp; echo "$t"_"$a$b"')];
    await using world = await e2e({
      placement,
      scenario: workload(calls),
      onModel: async (request) => void seen.push(JSON.stringify(request)),
    });
    const view = await world.turn('go');
    expect(commandsOf(view)[0]).toMatchObject({
      stdout: expect.stringMatching(/^ghp_/),
      leaks: [{ name: 'github_token', action: 'warned' }],
    });
    expect(seen.at(-1)).toContain('ghp_q7Zk2VxT9mB4w');
    expect(kernelBytes(world.stateDir)).toContain('ghp_q7Zk2VxT9mB4w');
    const events = await world.kernel.events(0, { run: view.run.id }, 1000);
    expect(events.some(({ data }) => JSON.stringify(data).includes('"github_token"'))).toBe(true);
    expect(JSON.stringify(events)).not.toContain('ghp_q7Zk2VxT9mB4w');
  });

  it('finding 3, 12: the ceiling is each user’s own, known before or not; a sibling is not affected, and what ends gives it back', async () => {
    const config = { runsPerUser: 2, ceilings: { ...CEILINGS, user: { ...CEILINGS.user, processes: 1 } } };
    const wait = scenario('wait', [['sh', '-c', 'until [ -e go ]; do sleep 0.05; done']]);
    await using world = await e2e({ placement, config, scenario: wait, users: ['ada', 'bo'] });
    const first = await world.post('one');
    await world.event(first, ({ type, data }) => type === 'call.dispatched' && data.capability === 'shell.exec');
    const second = await world.turn('two');
    expect(second.run).toMatchObject({ state: 'failed', failure: expect.stringContaining('budget_exhausted') });
    const refused = (await world.kernel.events(0, { run: second.run.id }, 100)).find(({ type }) => type === 'call.refused');
    expect(refused?.data).toMatchObject({ code: 'budget_exhausted', reason: 'user ada has used up processes (1)' });
    // A user whom no ceiling names has the same one, and it is not ada's.
    const sibling = await world.post('three', { user: 'bo' });
    await world.event(sibling, ({ type, data }) => type === 'call.dispatched' && data.capability === 'shell.exec');
    // A crash of the executor gives the place back.
    await world.kernel.cancelRun(first);
    await world.until(first);
    await world.switchScenario(scenario('short', [['true']]));
    expect((await world.turn('four')).run.state).toBe('completed');
    await world.kernel.cancelRun(sibling);
    await world.until(sibling);
  });

  it('finding 6, 7, 8: a limit of 1 KiB bounds both streams, the saved copies and the log of a background command, markers included', async () => {
    const noise = 'head -c 9000 /dev/zero | tr "\\0" a; head -c 9000 /dev/zero | tr "\\0" b >&2';
    const calls = [
      sh(noise, { outputBytes: 1, save: { path: 'kept', bytes: 1 } }),
      sh('stat -c %s kept kept.stderr'),
      sh(`${noise}; echo; exit 0`, { background: true, outputBytes: 1 }),
      {
        tool: 'shell',
        args: {
          argv: [
            'sh',
            '-c',
            'until grep -q ended "$1"; do sleep 0.02; done; stat -c %s "$1"; grep -c "bytes left out" "$1"',
            'sh',
            '{{result.2.0.background.log}}',
          ],
        },
      },
      sh('head -c 4106 /dev/zero | tr "\\0" c', { outputBytes: 4096 }),
    ];
    await using world = await e2e({ placement, scenario: workload(calls) });
    const [noisy, sizes, , log, exact] = resultsOf(await world.turn('go'));
    for (const stream of ['stdout', 'stderr']) expect(Buffer.byteLength(String(noisy?.[stream]))).toBeLessThanOrEqual(1024);
    expect(noisy).toMatchObject({ truncated: true, stdoutBytes: 9000, stdout: expect.stringContaining('of 9000 bytes left out') });
    for (const size of String(sizes?.stdout).trim().split('\n')) expect(Number(size)).toBeLessThanOrEqual(1024);
    const [logSize, marks] = String(log?.stdout).trim().split('\n').map(Number);
    expect(logSize).toBeLessThanOrEqual(1024);
    expect(marks).toBe(1);
    expect(Buffer.byteLength(String(exact?.stdout))).toBeLessThanOrEqual(4096);
  });

  it('finding 6: zero, a fraction and a word are refused, and nothing runs', async () => {
    const calls = [0, -5, 1.5, 'many'].map((outputBytes) => sh('echo ran >> ran', { outputBytes }));
    await using world = await e2e({ placement, scenario: workload([...calls, sh('cat ran; true')]) });
    const view = await world.turn('go');
    const refused = (await world.kernel.events(0, { run: view.run.id }, 200)).filter(({ type }) => type === 'call.refused');
    expect(refused.map(({ data }) => data.code)).toEqual(Array(4).fill('invalid_arguments'));
    expect(commandsOf(view)).toMatchObject([{ stdout: '' }]);
  });

  it('finding 9: a background command is told by one record: the log exists, the pid is its own, and it is ended by its id', async () => {
    const id = '{{result.0.0.background.id}}';
    const calls = [
      sh('echo "$$"; exec sleep 600', { background: true }),
      {
        tool: 'shell',
        args: {
          argv: [
            'sh',
            '-c',
            'until [ -s "$2" ]; do sleep 0.02; done; cat "$2"; ps -o pgid= -p "$1"',
            'sh',
            '{{result.0.0.background.pid}}',
            '{{result.0.0.background.log}}',
          ],
        },
      },
      { tool: 'background', args: { op: 'list' } },
      { tool: 'background', args: { op: 'kill', id } },
      {
        tool: 'shell',
        args: { argv: ['sh', '-c', 'kill -0 "$1" 2>&1 && echo alive || echo gone', 'sh', '{{result.0.0.background.pid}}'] },
      },
    ];
    await using world = await e2e({ placement, scenario: workload(calls) });
    const [started, looked, listed, killed, after] = resultsOf(await world.turn('go'));
    const { background } = started as unknown as RecordedCommand;
    expect(looked?.stdout).toMatch(new RegExp(`^${background?.pid}\\n\\s*${background?.pgid}\\n$`));
    expect(listed).toMatchObject({ op: 'list', commands: [{ ...background, running: true }] });
    expect(killed).toMatchObject({ op: 'kill', command: { id: background?.id, running: false, signal: 'SIGKILL' } });
    expect(after?.stdout).toContain('gone');
  });

  it('finding 10: a production kernel seats nothing on what nobody reviewed', async () => {
    await using world = await e2e({ placement, config: { profile: 'production' }, scenario: scenario('one', [['true']]) });
    const view = await world.turn('go');
    expect(view.run).toMatchObject({ state: 'failed', failure: expect.stringContaining('placement_not_reviewed') });
    expect(view.calls).toEqual([]);
  });

  it('finding 11: proxy variables open no way out: there is no interface but loopback, whatever a command is told', async () => {
    const env = { http_proxy: 'http://192.0.2.1:3128', HTTPS_PROXY: 'http://192.0.2.1:3128', NO_PROXY: '*' };
    const raw = `
import socket
for family, host in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')):
    try:
        socket.create_connection((host, 443), 2) if family == socket.AF_INET else socket.socket(family).connect((host, 443))
        print('open')
    except OSError as error: print('closed', error.errno is not None)
try:
    socket.getaddrinfo('example.test', 443); print('open')
except OSError: print('closed True')
`;
    const calls = [
      sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", { env }),
      { tool: 'shell', args: { argv: ['python3', '-c', raw], env } },
    ];
    await using world = await e2e({ placement, scenario: workload(calls) });
    const [interfaces, sockets] = commandsOf(await world.turn('go'));
    expect(interfaces?.stdout).toBe('lo\n');
    expect(sockets?.stdout.trim().split('\n')).toEqual(['closed True', 'closed True', 'closed True']);
  });

  it('finding 13: what package managers put into HOME is there in the next run, on PATH', async () => {
    // Where each of them puts programs that its user installs.
    const places = { npm: '$NPM_CONFIG_PREFIX/bin', pip: '$PYTHONUSERBASE/bin', cargo: '$CARGO_HOME/bin', go: '$GOPATH/bin' };
    const install = ([name, dir]: [string, string]) =>
      `mkdir -p "${dir}" && printf '#!/bin/sh\\necho ${name} kept\\n' > "${dir}/${name}-tool" && chmod +x "${dir}/${name}-tool"`;
    const cache = 'for c in "$NPM_CONFIG_CACHE" "$XDG_CACHE_HOME/pip" "$CARGO_HOME/registry" "$GOPATH/pkg/mod"';
    const first = workload([
      sh([...Object.entries(places).map(install), `${cache}; do mkdir -p "$c"; touch "$c/kept"; done`].join(' && ')),
    ]);
    await using world = await e2e({ placement, scenario: first });
    expect(commandsOf(await world.turn('install'))).toMatchObject([{ exitCode: 0, stderr: '' }]);
    const tools = Object.keys(places).map((name) => [`${name}-tool`]);
    const look = ['sh', '-c', `${cache}; do ls "$c/kept"; done; grep -c "^[^ ]* $HOME/" /proc/self/mounts; pwd`];
    // A kernel that starts makes new sandboxes, whatever the placement.
    await using next = await world.reopen({ scenario: scenario('use', [...tools, look]) });
    const outcomes = commandsOf(await next.turn('use'));
    expect(outcomes.slice(0, -1).map(({ stdout }) => stdout)).toEqual(Object.keys(places).map((name) => `${name} kept\n`));
    // Each cache has what was put there, and nothing is mounted below HOME, which is not below the workspace.
    const home = '/home/agent';
    expect(outcomes.at(-1)?.stdout.trim().split('\n')).toEqual([
      `${home}/.cache/npm/kept`,
      `${home}/.cache/pip/kept`,
      `${home}/.cargo/registry/kept`,
      `${home}/go/pkg/mod/kept`,
      '0',
      '/workspace',
    ]);
  });
});

const CONNECT = 'import socket; socket.create_connection(("127.0.0.1", 3001))';

describe.each(PLACEMENTS)('a command under %s', (placement) => {
  it('EXE exit code, signal, timeout and a child that holds stdout are told apart, and none is success', async () => {
    const calls = [
      sh('exit 9'),
      sh('kill -SEGV $$'),
      sh('(setsid sleep 600 &); trap "" TERM; sleep 600', { timeoutMs: 300 }),
      sh('sleep 600 & exit 3'),
      { tool: 'shell', args: { argv: ['no-such-program'] } },
      sh('nohup setsid -f sleep 600; exit 4'),
      { tool: 'shell', args: { argv: ['python3', '-c', HEADLESS] } },
      sh('ps -eL -o comm= | grep -cE "^(sleep|python3)$"; true'),
    ];
    await using world = await e2e({ placement, scenario: workload(calls) });
    const outcomes = commandsOf(await world.turn('go'));
    expect(outcomes).toMatchObject([
      { exitCode: 9, signal: null, timedOut: false },
      { exitCode: null, signal: 'SIGSEGV', timedOut: false },
      { exitCode: null, signal: 'SIGKILL', timedOut: true },
      { exitCode: 3, signal: null, timedOut: false },
      { exitCode: 127, stderr: 'no-such-program: not found\n' },
      { exitCode: 4, signal: null, timedOut: false },
      { exitCode: 0, stdout: 'looks dead\n' },
      { stdout: '0\n' },
    ]);
  });

  it('BL-089 a server in the background is listed with its port and holds it until it is ended, beyond the run where its sandbox stays', async () => {
    const server = sh('exec python3 -u -m http.server -b 127.0.0.1 3001', { background: true });
    const answers = sh(`until python3 -c '${CONNECT}' 2>/dev/null; do sleep 0.05; done`, { timeoutMs: 20_000 });
    const until = (id: string) => ({
      tool: 'shell',
      args: { argv: ['sh', '-c', 'until grep -q "ended: exit code 1" "$1"; do sleep 0.05; done', 'sh', id], timeoutMs: 20_000 },
    });
    const list = { tool: 'background', args: { op: 'list' } };
    const kill = { tool: 'background', args: { op: 'kill', id: '{{result.0.0.background.id}}' } };
    const calls = [server, answers, server, until('{{result.2.0.background.log}}'), list, kill, server, answers, list];
    await using world = await e2e({ placement, scenario: workload(calls) });
    const results = resultsOf(await world.turn('go'));
    const listed = (index: number) => (results[index] as { commands?: Json })?.commands;
    expect(listed(4)).toMatchObject([
      { running: true, ports: [3001] },
      { running: false, exitCode: 1 },
    ]);
    expect(listed(8)).toMatchObject([{ running: false }, { running: false }, { running: true, ports: [3001] }]);
    await world.switchScenario(workload([list]));
    const [later] = resultsOf(await world.turn('later')) as { commands: { running: boolean; ports?: number[] }[] }[];
    expect(later?.commands.filter(({ running }) => running)).toMatchObject(placement === 'disposable-per-run' ? [] : [{ ports: [3001] }]);
  });

  it('OUT progress of a command that lasts comes as events, coalesced, and its output is whole all the same', async () => {
    await using world = await e2e({ placement, scenario: workload([sh('for i in $(seq 30); do echo "step $i"; sleep 0.05; done')]) });
    const view = await world.turn('go');
    const progress = (await world.kernel.events(0, { run: view.run.id }, 1000)).filter(({ type }) => type === 'run.progress');
    expect(progress.length).toBeGreaterThan(0);
    expect(progress.length).toBeLessThan(8);
    expect(progress[0]?.data.progress).toMatchObject({ command: '0.2', stderrBytes: 0, tail: expect.stringMatching(/step \d+\n$/) });
    expect(commandsOf(view)[0]?.stdout.trim().split('\n')).toHaveLength(30);
  });

  it('WSP environment, arguments and input arrive byte for byte', async () => {
    const value = 'a\n\nb=\'"$(id)`\\';
    const big = 'x'.repeat(100_000);
    const code = 'import os,sys,json;print(json.dumps([os.environ["V"],sys.argv[1]==sys.argv[2]*100000,sys.stdin.read()]))';
    const args = { argv: ['python3', '-c', code, big, 'x'], env: { V: value }, stdin: 'ä\n{}\n' };
    await using world = await e2e({ placement, scenario: workload([{ tool: 'shell', args }]) });
    const [outcome] = commandsOf(await world.turn('go'));
    expect(JSON.parse(outcome?.stdout ?? '')).toEqual([value, true, 'ä\n{}\n']);
  });
});
