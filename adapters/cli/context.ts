import type { CompiledConfig } from '../../core/config.ts';
import type { KernelOperations } from '../../core/kernel.ts';
import { type ConfigOverrides, type LoadOptions, loadConfig } from '../config.ts';
import type { Io } from './io.ts';
import type { Output } from './output.ts';
import { openSession } from './with-kernel.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly json?: boolean;
  readonly state?: string;
  readonly config?: string;
}

/** What a command is given besides its own arguments. */
export interface CommandContext {
  readonly io: Io;
  readonly out: Output;
  readonly global: GlobalOptions;
}

export const loadOptions = ({ io, global }: CommandContext, overrides: ConfigOverrides = {}): LoadOptions => ({
  file: global.config,
  stateDir: global.state,
  env: io.env,
  cwd: io.cwd,
  overrides,
});

/** @throws ConfigError */
export const configOf = (context: CommandContext, overrides: ConfigOverrides = {}): CompiledConfig =>
  loadConfig(loadOptions(context, overrides));

/** Runs `use` against the kernel of the state directory, or against its rows when none runs; nothing is executed for it. */
export async function withOperations<T>(context: CommandContext, use: (operations: KernelOperations) => Promise<T>): Promise<T> {
  await using session = await openSession(configOf(context), { execute: false, openRows: context.io.openRows });
  return await use(session.operations);
}

/** Tenant of a command that names none. */
export const DEFAULT_TENANT = 'default';
