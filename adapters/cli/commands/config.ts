import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CompiledConfig } from '../../../core/config.ts';
import { ConfigError } from '../../../core/errors.ts';
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

/** Checks the configuration file and the files that it names; a bad one ends with every fault and exit code 4. @throws ConfigError */
export async function configCheck(context: CommandContext): Promise<number> {
  const { config } = explainConfig(loadOptions(context));
  const fault = stateDirFault(config.stateDir);
  await checkNamedFiles(config);
  const warnings = fault === undefined ? [] : [`state directory ${config.stateDir} ${fault.message} (${fault.fix})`];
  const { siteDir } = config.policy;
  if (siteDir !== undefined && !isBuilt(siteDir)) warnings.push(`policies.dir: no compiled rules in ${siteDir} (outwork policy build)`);
  if (context.out.json) context.out.document({ ok: true, file: config.file ?? null, warnings });
  else {
    context.out.line(config.file === undefined ? 'no configuration file: defaults apply' : `${config.file} is good`);
    for (const warning of warnings) context.out.note({ text: 'warning', style: 'yellow' }, `: ${warning}`);
  }
  return EXIT.good;
}

/** @throws ConfigError for a named file that no kernel could use */
async function checkNamedFiles({ file, model, policy }: CompiledConfig): Promise<void> {
  const refuse = (path: string, fault: string, hint?: string): never => {
    throw new ConfigError('config_unreadable', `${file ?? '(defaults)'}: ${path}: ${fault}`, hint === undefined ? {} : { hint });
  };
  const { readScenario } = await import('../../model/scenario.ts');
  try {
    readScenario(model.scenario);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    refuse('model.scenario', error.message, error.hint);
  }
  const { publicKey, dir } = policy;
  if (!isBuilt(dir)) refuse('policy.dir', `no compiled rules in ${dir}`, 'outwork policy build');
  if (publicKey !== undefined && !existsSync(publicKey)) refuse('policy.publicKey', `no file ${publicKey}`);
}

const isBuilt = (dir: string): boolean => existsSync(join(dir, 'dist', 'manifest.json'));
