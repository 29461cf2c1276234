import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { isScalar, parseDocument, visit } from 'yaml';
import type { z } from 'zod';
import { ConfigError, type ConfigErrorCode } from '../../core/errors.ts';
import { CONFIG_FILE_BYTES, type ConfigFile, configFileSchema } from './schema.ts';

export type Environment = { readonly [name: string]: string | undefined };

export const CONFIG_NAME = 'outwork.yaml';

/**
 * The configuration file to use: `--config`, else `OUTWORK_CONFIG`, else `outwork.yaml` in the working directory, else the one in
 * `$XDG_CONFIG_HOME/outwork/`. Undefined when none is named and none exists. A named file must exist: reading it says so.
 */
export function findConfigFile(where: { file?: string | undefined; env: Environment; cwd: string }): string | undefined {
  const named = where.file ?? (where.env.OUTWORK_CONFIG || undefined);
  if (named !== undefined) return resolve(where.cwd, named);
  return [join(where.cwd, CONFIG_NAME), join(xdgDir(where.env, 'XDG_CONFIG_HOME', '.config'), 'outwork', CONFIG_NAME)].find(exists);
}

/** A base directory of the XDG specification; a relative value counts as unset, as the specification says. */
export function xdgDir(env: Environment, variable: string, fallback: string): string {
  const value = env[variable];
  if (value !== undefined && isAbsolute(value)) return value;
  return join(env.HOME !== undefined && isAbsolute(env.HOME) ? env.HOME : homedir(), fallback);
}

function exists(file: string): boolean {
  try {
    closeSync(openSync(file, 'r'));
    return true;
  } catch (error) {
    // A file that is there and cannot be read is an error to report, not a reason to use the next one.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT' && (error as NodeJS.ErrnoException).code !== 'ENOTDIR';
  }
}

/** @throws ConfigError `config_unreadable` `config_malformed` `config_unknown_key`, with every fault on a line of its own as `path: message` */
export function readConfigFile(file: string): ConfigFile {
  return parseConfig(decode(file, readBytes(file)), file);
}

function readBytes(file: string): Uint8Array {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const { size } = fstatSync(descriptor);
    if (!fstatSync(descriptor).isFile()) throw new ConfigError('config_unreadable', `${file}: is not a regular file`);
    if (size > CONFIG_FILE_BYTES) throw new ConfigError('config_unreadable', `${file}: is larger than ${CONFIG_FILE_BYTES} bytes`);
    return readFileSync(descriptor);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError('config_unreadable', `${file}: cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown'})`, {
      cause,
    });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ConfigError('config_malformed', `${file}: is not UTF-8 text`, { cause });
  }
}

/** Parses and checks the text of a configuration file. An empty file says nothing. @throws ConfigError as `readConfigFile` */
export function parseConfig(text: string, file: string): ConfigFile {
  const parsed = configFileSchema.safeParse(parseYaml(text, file) ?? {});
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.flatMap(describeIssue);
  const code: ConfigErrorCode = faults.every(({ unknown }) => unknown) ? 'config_unknown_key' : 'config_malformed';
  const lines = faults.map((fault) => fault.text);
  throw new ConfigError(code, faultText(file, lines), { hint: 'outwork config check' });
}

function parseYaml(text: string, file: string): unknown {
  try {
    const document = parseDocument(text, { schema: 'core', uniqueKeys: true, merge: false, prettyErrors: true, stringKeys: true });
    const complaints = [...document.errors, ...document.warnings].map(({ message }) => firstLine(message));
    visit(document, {
      Pair(_, { key }) {
        // A mapping of names would skip this key in silence.
        if (isScalar(key) && key.value === '__proto__') complaints.push('__proto__: unknown key');
      },
      Alias() {
        // Nothing in this file needs one, and a dozen can expand to gigabytes.
        complaints.push('anchors and aliases are not allowed');
        return visit.BREAK;
      },
    });
    if (complaints.length > 0) throw malformed(file, complaints);
    return document.toJS({ maxAliasCount: 0 });
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    // The parser recurses: a file of nothing but brackets ends its stack.
    throw malformed(file, ['cannot be parsed (too deeply nested?)'], cause);
  }
}

const firstLine = (message: string): string => message.split('\n', 1)[0]?.replace(/:$/, '') ?? message;

const malformed = (file: string, faults: readonly string[], cause?: unknown): ConfigError =>
  new ConfigError('config_malformed', faultText(file, faults), { cause, hint: 'outwork config check' });

/** One fault per line, the file's name before them. */
export const faultText = (file: string, faults: readonly string[]): string =>
  [`${file}:`, ...faults.map((fault) => `  ${fault}`)].join('\n');

function describeIssue(issue: z.core.$ZodIssue): { text: string; unknown: boolean }[] {
  const at = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ text: `${at === '' ? key : `${at}.${key}`}: unknown key`, unknown: true }));
  }
  if (issue.code === 'invalid_key') {
    return [{ text: `${at}: ${issue.issues[0]?.message ?? 'is not a name'}`, unknown: false }];
  }
  return [{ text: `${at === '' ? '(file)' : at}: ${issue.message}`, unknown: false }];
}
