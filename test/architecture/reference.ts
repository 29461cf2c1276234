import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { ROUTES, type Route } from '../../adapters/api/http/routes.ts';
import { EXIT, exitCodeOf } from '../../adapters/cli/exit-code.ts';
import { buildProgram } from '../../adapters/cli/program.ts';
import { renderReport } from '../../adapters/compare/report.ts';
import { configFileSchema } from '../../adapters/config/schema.ts';
import { explainConfig } from '../../adapters/config.ts';
import * as errors from '../../core/errors.ts';
import { EVENT_TYPES } from '../../core/events.ts';
import { SAFETY } from '../../core/limits.ts';
import { declaration, errorClasses, keyComments } from './doc-comments.ts';
import { metrics, withMetrics } from './metrics-list.ts';
import { readSample, SAMPLE_REPORT, withSample } from './sample.ts';
import { ROOT, read } from './sources.ts';

/** Beside the command line that it describes: the top level of the repository has a fixed list of files. */
export const REFERENCE_FILE = 'adapters/cli/reference.md';

const EXIT_MEANING: Readonly<Record<keyof typeof EXIT, string>> = {
  good: 'done and good',
  bad: 'done and not good: a turn failed, a check found something',
  usage: 'the command line, or what it names, is wrong',
  missing: 'something that this machine must have is missing; the error names it',
  refused: 'policy, configuration or review refused',
  parked: 'a run waits at a gate; the gate and its id are on the last line',
  interrupted: 'interrupted',
};

/** Defaults that depend on who asks. */
const SPOKEN_DEFAULT: Readonly<Record<string, string>> = {
  stateDir: '`$XDG_STATE_HOME/outwork`',
  'policy.dir': '`policies/` of the package',
};

/** Sections of the configuration whose keys are explained where their defaults stand. */
const IN_LIMITS = { capacity: 'CAPACITY', limits: 'SANDBOX_LIMITS', retention: 'RETENTION' } as const;

/** The tables of everything that has a name, from the code that defines it. */
export async function renderReference(): Promise<string> {
  return `# Reference

Written by \`npm run docs\` from the sources; a test fails when it is old.

## Commands

Every command takes \`--json\`, \`--state DIR\` and \`--config FILE\`.

${table(['command', 'does', 'options'], commands(buildProgram('', async () => {})))}

## Exit codes

${table(
  ['code', 'meaning'],
  Object.entries(EXIT).map(([name, code]) => [String(code), EXIT_MEANING[name as keyof typeof EXIT]]),
)}

## Configuration

Keys of \`outwork.yaml\`; every one may be left out, an unknown one refuses to start. \`outwork config show\` prints what applies and where it came from.

${table(['key', 'value', 'default', 'what it is'], configKeys())}

## Safety limits

Fixed. Each is enforced before anything is allocated.

${table(['limit', 'value', 'what it bounds'], safetyLimits())}

## Events

${table(
  ['event', 'when'],
  Object.entries(EVENT_TYPES).map(([type, when]) => [code(type), when]),
)}

## HTTP API

What \`outwork serve\` answers. Whom a request acts for comes from its bearer token alone (\`outwork user token\`); \`GET /openapi.json\` has the whole description.

${table(
  ['request', 'does', 'roles'],
  Object.values(ROUTES as Readonly<Record<string, Route>>).map(({ method, path, summary, roles }) => [
    code(`${method} ${path}`),
    summary,
    roles === 'anyone' ? 'no token' : roles.join(', '),
  ]),
)}

## Metrics

${table(
  ['metric', 'type', 'what it counts'],
  (await metrics()).map(({ name, type, help }) => [code(name), type, help]),
)}

## Errors

With \`--json\` an error is \`{error: {code, message, hint}}\`. Callers match \`code\`.

${table(['area', 'meaning', 'codes', 'exit code'], errorRows())}
`;
}

const code = (text: string): string => `\`${text}\``;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replace(/\s+/g, ' ')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function commands(program: Command, above: readonly string[] = []): string[][] {
  return program.commands.flatMap((command) => {
    const path = [...above, command.name()];
    if (command.commands.length > 0) return commands(command as Command, path);
    const words = command.registeredArguments.map((argument) => `<${argument.name()}>`);
    const options = command.options.map(({ flags, description }) => `${code(flags)} ${description}`);
    return [[code([...path, ...words].join(' ')), command.description(), options.join('<br>')]];
  });
}

interface JsonSchema {
  readonly description?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
}

function configKeys(): string[][] {
  const { lines } = explainConfig({ env: { HOME: '/nonexistent', XDG_CONFIG_HOME: '/nonexistent' }, cwd: '/nonexistent' });
  const defaults = new Map(lines.map(({ path, value }) => [path, code(String(value))]));
  const explained = new Map(
    Object.entries(IN_LIMITS).flatMap(([section, name]) =>
      [...keyComments(declaration(read('core/limits.ts'), name))].map(([key, comment]) => [`${section}.${key}`, comment]),
    ),
  );
  const row = (path: string, schema: JsonSchema): string[] => [
    code(path),
    valueText(schema),
    SPOKEN_DEFAULT[path] ?? defaults.get(path) ?? '',
    schema.description ?? explained.get(path) ?? '',
  ];
  const walk = (schema: JsonSchema, prefix: string): string[][] =>
    Object.entries(schema.properties ?? {}).flatMap(([key, inner]) => {
      const path = `${prefix}${key}`;
      if (inner.properties !== undefined) return walk(inner, `${path}.`);
      if (typeof inner.additionalProperties === 'object') return walk(inner.additionalProperties, `${path}.<name>.`);
      return [row(path, inner)];
    });
  return walk(z.toJSONSchema(configFileSchema, { io: 'input' }) as JsonSchema, '');
}

function valueText(schema: JsonSchema): string {
  if (schema.const !== undefined) return code(String(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((one) => code(String(one))).join(', ');
  if (schema.anyOf !== undefined) return schema.anyOf.map(valueText).join(' or ');
  if (schema.properties !== undefined) {
    return Object.entries(schema.properties)
      .map(([key, inner]) => `${code(`${key}:`)} ${valueText(inner)}`)
      .join(', ');
  }
  if (schema.items !== undefined) return `list of ${valueText(schema.items)}`;
  if (schema.minimum !== undefined && schema.maximum !== undefined) return `${schema.minimum} to ${schema.maximum}`;
  return schema.type === 'string' ? 'text' : (schema.type ?? '');
}

function safetyLimits(): string[][] {
  const comments = keyComments(declaration(read('core/limits.ts'), 'SAFETY'));
  return Object.entries(SAFETY).map(([key, value]) => [code(key), String(value), comments.get(key) ?? '']);
}

function errorRows(): string[][] {
  return errorClasses(read('core/errors.ts')).flatMap(({ name, codes, meaning }) => {
    const byExit = Map.groupBy(codes, (one) => exitCodeOf(makeError(name, one)));
    return [...byExit].map(([exit, group], index) => [
      index === 0 ? code(name) : '',
      index === 0 ? meaning : '',
      group.map(code).join(', '),
      String(exit),
    ]);
  });
}

function makeError(name: string, errorCode: string): unknown {
  const area = (errors as Readonly<Record<string, unknown>>)[name] as new (code: string, message: string) => errors.OutworkError;
  return new area(errorCode, '');
}

if (import.meta.main) {
  writeFileSync(join(ROOT, REFERENCE_FILE), await renderReference());
  writeFileSync(join(ROOT, SAMPLE_REPORT), renderReport(readSample()));
  writeFileSync(join(ROOT, 'README.md'), withMetrics(withSample(read('README.md')), await metrics()));
}
