import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PrerequisiteError } from '../../core/errors.ts';
import type { EngineName } from '../../core/run/types.ts';
import type { EngineFacts } from './results.ts';

const COMMANDS: Readonly<Record<EngineName, { readonly argv: readonly [string, ...string[]]; readonly wall: string }>> = {
  bubblewrap: { argv: ['bwrap', '--version'], wall: 'namespaces' },
  docker: { argv: ['docker', 'version', '--format', '{{.Server.Version}}'], wall: 'container' },
};

/** Name, wall and version of an engine. @throws PrerequisiteError `engine_unavailable` */
export async function describeEngine(name: EngineName): Promise<EngineFacts> {
  const { argv, wall } = COMMANDS[name];
  const [program, ...args] = argv;
  try {
    const { stdout } = await promisify(execFile)(program, args);
    return { name, wall, version: stdout.trim() };
  } catch (cause) {
    throw new PrerequisiteError('engine_unavailable', `${name} is not available`, { cause, hint: 'outwork doctor' });
  }
}
