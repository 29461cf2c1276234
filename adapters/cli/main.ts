import { CommanderError } from 'commander';
import { errorBody, UsageError } from '../../core/errors.ts';
import { openFilesError } from '../config/open-files.ts';
import { diskFullError } from '../no-room.ts';
import type { GlobalOptions } from './context.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import type { Dispatch } from './grammar.ts';
import { type Io, processIo } from './io.ts';
import { Output } from './output.ts';
import { buildProgram } from './program.ts';
import { packageVersion } from './version.ts';

/** Runs one command line to its end. @returns the exit code; it never rejects */
export async function main(args: readonly string[], io: Io = processIo()): Promise<number> {
  const reader: { gone: boolean; fault?: Error } = { gone: false };
  io.onStdoutFailed((error) => {
    // A reader that has gone took what it wanted; anything else loses what it is owed.
    if (error.code !== 'EPIPE') reader.fault ??= error;
    reader.gone = true;
  });
  const makeOutput = (json: boolean) => new Output({ json, reader, stdout: io.stdout, stderr: io.stderr, env: io.env });
  const code = await runLine(args, io, makeOutput);
  await io.stdoutTaken();
  if (reader.fault === undefined) return code;
  makeOutput(false).error({ error: { code: 'output_lost', message: `standard output cannot be written: ${reader.fault.message}` } });
  return EXIT.bad;
}

async function runLine(args: readonly string[], io: Io, makeOutput: (json: boolean) => Output): Promise<number> {
  let code: number = EXIT.good;
  const dispatch: Dispatch = async (command, global: GlobalOptions) => {
    const out = makeOutput(global.json ?? false);
    try {
      code = await command({ io, out, global });
    } catch (raised) {
      const error = diskFullError(openFilesError(raised));
      code = exitCodeOf(error);
      out.error(errorBody(error));
    }
  };
  const program = buildProgram(packageVersion(), dispatch);
  const complaints: string[] = [];
  configureForOneDocument(program, io, complaints);
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version come here too, with exit code 0, and have printed themselves.
    if (error.exitCode === 0) return EXIT.good;
    const json = wantsJson(args);
    // A command group that was named alone: its help is the complaint, and for a person no sentence to be put into another.
    if (error.code === 'commander.help' && !json) io.stderr.write(complaints.join(''));
    else makeOutput(json).error(errorBody(usageFault(error, complaints)));
    return EXIT.usage;
  }
  return code;
}

type Program = ReturnType<typeof buildProgram>;

/** Commander neither exits nor prints complaints by itself; help and version go where results go. Subcommands inherit nothing of this. */
function configureForOneDocument(command: Program, io: Io, complaints: string[]): void {
  command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => complaints.push(text),
      getOutHelpWidth: () => io.stdout.columns ?? 80,
      getErrHelpWidth: () => io.stderr.columns ?? 80,
    });
  for (const sub of command.commands) configureForOneDocument(sub as Program, io, complaints);
}

function usageFault(error: CommanderError, complaints: readonly string[]): UsageError {
  if (error.code === 'commander.help') return new UsageError('usage', complaints.join('').trimEnd(), { hint: 'name one of the commands' });
  const text = error.message.replace(/^error: /, '').replace(/\n\(/, ' (');
  return new UsageError('usage', text, { hint: 'outwork --help' });
}

const wantsJson = (args: readonly string[]): boolean => {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
};
