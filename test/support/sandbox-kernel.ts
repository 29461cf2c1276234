/**
 * A kernel process for engine tests, with nothing in it but the engine: it runs as the user the test names, makes sandboxes, listens on
 * their membrane sockets as the kernel would, and does what the test asks over its IPC channel (`sandbox-client.ts` is the other end).
 */
import { chmod } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createBubblewrapEngine } from '../../adapters/sandbox/bubblewrap/engine.ts';
import { launch } from '../../adapters/sandbox/bubblewrap/launch.ts';
import { type SandboxPlan, STAGED } from '../../adapters/sandbox/bubblewrap/plan.ts';
import type { SandboxLimits } from '../../core/config.ts';
import { SANDBOX_LIMITS } from '../../core/limits.ts';
import { systemClock } from '../../core/seams/clock.ts';
import type { SandboxHandle, SandboxSpec } from '../../core/seams/sandbox-engine.ts';
import type { KernelRequest, Weakening } from './sandbox-client.ts';

interface Sandbox {
  readonly handle: Pick<SandboxHandle, 'ended' | 'stop' | 'usage'> & { readonly initPid?: number };
  readonly server: Server;
  readonly guest: Socket;
  readonly answers: Map<number, (answer: { value?: unknown; error?: string }) => void>;
  readonly lost: Promise<{ readonly error: string }>;
}

const [stateDir, guestBundle, limitsText] = process.argv.slice(2) as [string, string, string];
const limits = { ...SANDBOX_LIMITS, ...(JSON.parse(limitsText) as Partial<SandboxLimits>) };
// As careful users have it: what a sandbox must be able to read has its mode said.
process.umask(0o077);
const engine = createBubblewrapEngine({ stateDir, guestBundle, nodeBinary: process.execPath, clock: systemClock, limits });
const sandboxes = new Map<string, Sandbox>();
let sequence = 0;

const operations: { readonly [Name in KernelRequest['op']]: (request: Extract<KernelRequest, { op: Name }>) => Promise<unknown> } = {
  async start({ generation, slice, token, weakening, paths }) {
    const spec: SandboxSpec = {
      tenant: 't',
      user: `u${slice}`,
      generation,
      slice,
      token,
      socketDir: join(stateDir, 's', generation),
      workspaceDir: paths?.workspaceDir ?? join(stateDir, 'workspace', `u${slice}`),
      homeDir: join(stateDir, 'home', `u${slice}`),
    };
    await engine.prepareSocketDir(spec);
    const socketPath = join(spec.socketDir, 'membrane.sock');
    const server = createServer();
    const connected = new Promise<Socket>((resolve) => server.once('connection', resolve));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    await engine.grantSocket(socketPath, slice);
    if (weakening?.socketModes !== undefined) {
      await chmod(spec.socketDir, weakening.socketModes.directory);
      await chmod(socketPath, weakening.socketModes.socket);
    }
    let handle: Sandbox['handle'];
    try {
      handle = weakening === undefined ? await engine.start(spec) : await startWeakened(spec, weakening);
    } catch (error) {
      server.close();
      throw error;
    }
    const guest = await Promise.race([connected, handle.ended.then(({ reason }) => Promise.reject(new Error(reason)))]);
    const answers: Sandbox['answers'] = new Map();
    const hello = new Promise<string>((resolve) => {
      createInterface({ input: guest }).on('line', (line) => {
        const message = JSON.parse(line);
        if ('hello' in message) resolve(message.hello);
        else answers.get(message.id)?.(message);
      });
    });
    guest.on('error', () => {});
    const lost = new Promise<{ error: string }>((resolve) => guest.once('close', () => resolve({ error: 'the guest is gone' })));
    sandboxes.set(generation, { handle, server, guest, answers, lost });
    void handle.ended.then(() => server.close());
    return { hello: await hello, initPid: handle.initPid ?? null };
  },

  async evaluate({ generation, code }) {
    const sandbox = find(generation);
    sequence += 1;
    const id = sequence;
    const answer = new Promise<{ value?: unknown; error?: string }>((resolve) => sandbox.answers.set(id, resolve));
    sandbox.guest.write(`${JSON.stringify({ id, code })}\n`);
    const { value, error }: { value?: unknown; error?: string } = await Promise.race([answer, sandbox.lost]);
    if (error !== undefined) throw new Error(error);
    return value;
  },

  stop: async ({ generation }) => find(generation).handle.stop(),
  ended: async ({ generation }) => find(generation).handle.ended,
  usage: async ({ generation }) => find(generation).handle.usage(),
  sweep: () => engine.sweep(),
  lookAtDisk: () => engine.lookAtDisk(),
  prepareSocketDir: ({ socketDir, slice }) => engine.prepareSocketDir({ socketDir, slice }),
};

/** The engine's own plan with one part taken out, run by the engine's own launcher. */
async function startWeakened(spec: SandboxSpec, weakening: Weakening): Promise<Sandbox['handle']> {
  const launched = await launch(weaken(await engine.plan(spec), weakening), spec.token, systemClock, 20_000);
  const ended = launched.exited.then(({ code }) => ({ reason: `exit ${code}; ${launched.output()}` }));
  return {
    ended,
    initPid: launched.init.pid,
    async stop() {
      process.kill(launched.init.pid, 'SIGKILL');
      await ended;
    },
    usage: async () => ({ memoryBytes: 0, processes: 0 }),
  };
}

function weaken(plan: SandboxPlan, weakening: Weakening): SandboxPlan {
  const {
    without = [],
    replace = {},
    first = [],
    before = [],
    writableSocketDir = false,
    keepInherited = false,
    command,
    limits,
    uidMap,
  } = weakening;
  const bubblewrap = plan.bubblewrap.map((arg, i) => (writableSocketDir && plan.bubblewrap[i + 1] === STAGED.socketDir ? '--bind' : arg));
  return {
    ...plan,
    uidMap: uidMap ?? plan.uidMap,
    ownSession: plan.ownSession && weakening.kernelSession !== true,
    // The stage starts by closing what the kernel process inherited.
    stages: keepInherited ? { ...plan.stages, unmapped: plan.stages.unmapped.replace(/^for [\s\S]*?done\n/, '') } : plan.stages,
    limits: limits ?? plan.limits,
    before: [...before, ...plan.before.flatMap((arg) => replace[arg] ?? [arg])],
    bubblewrap: [...first, ...bubblewrap.flatMap((arg) => (without.includes(arg) ? [] : (replace[arg] ?? [arg])))],
    command: command ?? plan.command,
  };
}

function find(generation: string): Sandbox {
  const sandbox = sandboxes.get(generation);
  if (sandbox === undefined) throw new Error(`no sandbox ${generation}`);
  return sandbox;
}

/** Nobody waits any more once the test has closed the channel. */
const answer = (message: object) => process.connected && process.send?.(message);

process.on('message', ({ id, request }: { id: number; request: KernelRequest }) => {
  const operation = operations[request.op] as (request: KernelRequest) => Promise<unknown>;
  operation(request).then(
    (value) => answer({ id, value: value ?? null }),
    (error) => answer({ id, error: { code: error.code ?? 'internal', message: String(error.message) } }),
  );
});
process.on('disconnect', () => {
  // What is left of a sandbox outside it (its control groups) goes with its end.
  void Promise.allSettled([...sandboxes.values()].map(({ handle }) => handle.stop())).then(() => process.exit(0));
});
// What only a kernel may know, to be looked for inside.
process.env.OUTWORK_TEST_SECRET ??= 'kernel-only-secret';
process.send?.({ ready: true });
