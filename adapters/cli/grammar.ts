import { type Command, InvalidArgumentError } from 'commander';
import type { CommandContext, GlobalOptions } from './context.ts';

/** A command's own function: gets its arguments in order, then its options. */
export type CommandFunction = (context: CommandContext, ...given: never[]) => Promise<number>;

/** Runs the function of a command; it is loaded only then, so that help and version stay fast. */
export type Dispatch = (command: (context: CommandContext) => Promise<number>, global: GlobalOptions) => Promise<void>;

/** Makes the action of a command out of what loads its function. */
export type On = (load: () => Promise<CommandFunction>) => (...given: unknown[]) => Promise<void>;

export const onWith =
  (dispatch: Dispatch): On =>
  (load) =>
  (...given) => {
    const command = given.pop() as Command;
    return dispatch(async (context) => (await load())(context, ...(given as never[])), command.optsWithGlobals() as GlobalOptions);
  };

/**
 * An option that takes any text takes no empty one: that is a variable that was not set, and would be read as the working directory or as
 * nothing.
 */
export function refuseEmptyValues(command: Command): void {
  for (const option of command.options) {
    if ((option.required || option.optional) && option.parseArg === undefined) option.argParser(textArgument);
  }
  for (const sub of command.commands) refuseEmptyValues(sub);
}

function textArgument(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It is empty.');
  return text;
}
