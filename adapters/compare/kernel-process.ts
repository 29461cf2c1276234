import { createReadStream } from 'node:fs';
import type { CompiledConfig } from '../../core/config.ts';
import { errorBody, UsageError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import type { Measurable } from '../../core/measure.ts';
import { createKernel } from '../compose.ts';
import { loadConfig } from '../config.ts';
import { beginTurn, resumeTurn } from './kill.ts';
import type { KernelAnswer, KernelProcessOptions, KernelReplies, KernelRequest } from './protocol.ts';
import { runTurn } from './turn.ts';
import { readUsage, watchedTurn } from './usage.ts';

/**
 * A process that holds one kernel and nothing else, so that its unique memory is the kernel's. Started by `kernel-session.ts` with an IPC
 * channel; ends, and its kernel with it, when that channel closes.
 */
const TENANT = 'compare';
const userName = (index: number): string => `user-${index + 1}`;
const everyUser = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => userName(index));

/** No file is searched for: what is measured depends on what the caller named and on nothing that happens to lie around. */
const configOf = ({ stateDir, configFile, placement, engine, scenario }: KernelProcessOptions): CompiledConfig =>
  loadConfig({
    file: configFile,
    env: { HOME: stateDir },
    cwd: stateDir,
    stateDir,
    overrides: { placement, engine, scenario, harness: 'scripted' },
  });

type Handlers = { readonly [Op in KernelRequest['op']]: (request: Extract<KernelRequest, { op: Op }>) => Promise<KernelReplies[Op]> };

function handlersOf(kernel: Kernel & Measurable, options: KernelProcessOptions): Handlers {
  const first = { tenant: TENANT, user: userName(0), placement: options.placement };
  return {
    async users({ count }) {
      const known = new Set((await kernel.listUsers(TENANT)).map((user) => user.name));
      for (const name of everyUser(count)) if (!known.has(name)) await kernel.addUser({ tenant: TENANT, name, roles: ['user'] });
      return null;
    },
    async import({ users, file, path }) {
      for (const user of everyUser(users)) await kernel.importFile({ tenant: TENANT, user }, path, createReadStream(file));
      return null;
    },
    async round({ users, body, limitMs }) {
      const before = await kernel.measure();
      const samples = await Promise.all(everyUser(users).map((user) => runTurn(kernel, { ...first, user, body, limitMs })));
      return { samples, before, after: await kernel.measure() };
    },
    watched: ({ body, limitMs }) => watchedTurn(kernel, { ...first, body, limitMs }),
    usage: () => readUsage(kernel, first),
    begin: ({ body, kill, limitMs }) => beginTurn(kernel, { ...first, body, limitMs }, kill),
    resume: ({ run, cursor, limitMs }) => resumeTurn(kernel, { run, cursor, limitMs }),
  };
}

const failure = (id: number, error: unknown): KernelAnswer => ({
  id,
  area: error instanceof Error ? error.name : 'Error',
  ...errorBody(error),
});

async function answer(handlers: Handlers, id: number, request: KernelRequest): Promise<KernelAnswer> {
  try {
    const handler = handlers[request.op] as (request: KernelRequest) => Promise<KernelReplies[KernelRequest['op']]>;
    return { id, value: await handler(request) };
  } catch (error) {
    return failure(id, error);
  }
}

const send = (message: unknown): Promise<void> =>
  new Promise((resolve) => {
    // A parent that is gone needs no answer; `disconnect` ends this process.
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, () => resolve());
  });

async function main(argument: string | undefined): Promise<void> {
  if (process.send === undefined || argument === undefined) throw new UsageError('usage', 'started by `outwork compare` only');
  const options = JSON.parse(argument) as KernelProcessOptions;
  const kernel = await createKernel(configOf(options));
  const ended = new Promise<void>((resolve) => {
    process
      .once('disconnect', resolve)
      .once('SIGTERM', resolve)
      .once('SIGINT', () => {});
  });
  await kernel.start();
  const handlers = handlersOf(kernel, options);
  process.on('message', (message: { id: number; request: KernelRequest }) => {
    void answer(handlers, message.id, message.request).then(send);
  });
  await send({ id: 0, value: null } satisfies KernelAnswer);
  await ended;
  await kernel.close();
}

try {
  await main(process.argv[2]);
  process.exit(0);
} catch (error) {
  await send(failure(0, error));
  process.exit(1);
}
