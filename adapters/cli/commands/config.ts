import { stateDirFault } from '../../config/state-dir.ts';
import { explainConfig } from '../../config.ts';
import { type CommandContext, loadOptions } from '../context.ts';
import { EXIT } from '../exit-code.ts';
import { printTable } from '../table.ts';

/** Prints the configuration that applies, and of each value where it came from. Starts nothing and makes nothing. */
export async function configShow(context: CommandContext): Promise<number> {
  const { out } = context;
  const { config, lines } = explainConfig(loadOptions(context));
  if (out.json) {
    out.document({
      config: { ...config, file: config.file ?? null },
      sources: Object.fromEntries(lines.map((line) => [line.path, line.source])),
    });
    return EXIT.good;
  }
  out.note(config.file === undefined ? 'no configuration file: defaults' : `file ${config.file}`);
  const columns = [
    { title: 'KEY', value: (line: (typeof lines)[0]) => line.path },
    { title: 'VALUE', value: (line: (typeof lines)[0]) => String(line.value) },
    {
      title: 'FROM',
      value: (line: (typeof lines)[0]) => line.source,
      style: (line: (typeof lines)[0]) => (line.source === 'default' ? 'dim' : undefined),
    },
  ] as const;
  printTable(out, columns, lines, '');
  return EXIT.good;
}

/** Checks the configuration file; a bad one ends with every fault and exit code 4. @throws ConfigError */
export async function configCheck(context: CommandContext): Promise<number> {
  const { config } = explainConfig(loadOptions(context));
  const fault = stateDirFault(config.stateDir);
  const warnings = fault === undefined ? [] : [`state directory ${config.stateDir} ${fault.message} (${fault.fix})`];
  if (context.out.json) context.out.document({ ok: true, file: config.file ?? null, warnings });
  else {
    context.out.line(config.file === undefined ? 'no configuration file: defaults apply' : `${config.file} is good`);
    for (const warning of warnings) context.out.note({ text: 'warning', style: 'yellow' }, `: ${warning}`);
  }
  return EXIT.good;
}
