import { type CommandContext, DEFAULT_TENANT, withOperations } from '../context.ts';
import { reasonOf, timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import { printTable } from '../table.ts';

export interface ThreadOptions {
  readonly tenant?: string;
}

/** Threads of a tenant. */
export async function threadList(context: CommandContext, options: ThreadOptions & { readonly limit: number }): Promise<number> {
  const { out } = context;
  const threads = await withOperations(context, (kernel) => kernel.listThreads(options.tenant ?? DEFAULT_TENANT, options.limit));
  if (out.json) {
    out.document(threads);
    return EXIT.good;
  }
  const columns = [
    { title: 'THREAD', value: ({ id }: (typeof threads)[0]) => id },
    { title: 'CREATED', value: ({ createdAtMs }: (typeof threads)[0]) => timeText(createdAtMs) },
  ];
  printTable(out, columns, threads, 'no threads');
  return EXIT.good;
}

/** Messages of a thread in order, and what its unfinished runs wait for. */
export async function threadShow(context: CommandContext, id: string, options: ThreadOptions): Promise<number> {
  const { out } = context;
  const view = await withOperations(context, (kernel) => kernel.showThread(options.tenant ?? DEFAULT_TENANT, id));
  if (out.json) {
    out.document(view);
    return EXIT.good;
  }
  for (const message of view.messages) {
    const who = message.author === 'agent' ? `agent for ${message.user}` : message.steers ? `${message.user} (steering)` : message.user;
    out.line({ text: `#${message.seq} ${who}`, style: 'bold' }, { text: ` ${timeText(message.createdAtMs)} ${message.run}`, style: 'dim' });
    out.line(message.body);
  }
  for (const run of view.runs) if (run.endedAtMs === undefined) out.note(`${run.id} ${run.state} ${reasonOf(run)}`);
  return EXIT.good;
}
