import type { EngineName, PlacementName } from '../../../core/run/types.ts';
import { runCompare } from '../../compare/main.ts';
import { renderTable } from '../../compare/table.ts';
import type { CommandContext } from '../context.ts';
import { EXIT } from '../exit-code.ts';

export interface CompareCommandOptions {
  readonly engine: readonly EngineName[];
  readonly placement: readonly PlacementName[];
  readonly workload: string;
  readonly turns: number;
  readonly concurrency: number;
  readonly out?: string;
  readonly quick?: boolean;
}

/** Measures the placements side by side: the table (or the results document), and with `--out` a report. Exit code 1 when a turn failed. */
export async function compare(context: CommandContext, options: CompareCommandOptions): Promise<number> {
  const { io, out, global } = context;
  const interrupt = new AbortController();
  const stopListening = io.onInterrupt((count) => (count > 1 ? io.exit(EXIT.interrupted) : interrupt.abort()));
  try {
    const { engine: engines, placement: placements, workload, turns, concurrency, quick = false } = options;
    const { results, written, exitCode } = await runCompare({
      ...{ engines, placements, workload, turns, concurrency, quick },
      out: options.out,
      directory: io.cwd,
      configFile: global.config,
      signal: interrupt.signal,
      log: (line) => out.note({ text: line, style: 'dim' }),
    });
    if (out.json) out.document(results);
    else out.styled((color, columns) => renderTable(results, { color, columns }));
    for (const file of written) out.note(`written: ${file}`);
    return exitCode;
  } catch (error) {
    if (interrupt.signal.aborted) return EXIT.interrupted;
    throw error;
  } finally {
    stopListening();
  }
}
