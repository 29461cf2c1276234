import { type CommandContext, withOperations } from '../context.ts';
import { EXIT } from '../exit-code.ts';

/** Builds what sandboxes are made of, or says that it is up to date. A kernel that runs does it itself and uses it from the next start on. */
export async function imageBuild(context: CommandContext, { force = false }: { readonly force?: boolean }): Promise<number> {
  const { out } = context;
  const status = await withOperations(context, (kernel) => kernel.buildImage({ force }));
  if (out.json) {
    out.document(status);
    return EXIT.good;
  }
  for (const { part, why } of status.faults) out.note({ text: why.padEnd(10), style: 'yellow' }, ` ${part}`);
  out.line(`${status.built ? 'built' : 'up to date'} ${status.engine} ${status.digest}`);
  if (status.removed > 0)
    out.note({ text: `${status.removed} that no sandbox uses ${status.removed === 1 ? 'is' : 'are'} gone`, style: 'dim' });
  return EXIT.good;
}
