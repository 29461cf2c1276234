import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../adapters/cli/program.ts';

const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap((sub) => all(sub as Command))];
const valued = all(buildProgram('', async () => {})).flatMap((command) =>
  command.options
    .filter(({ required, optional }) => required || optional)
    .map((option) => [`${command.name()} ${option.flags}`, option] as const),
);

describe('the grammar', () => {
  it('has options that take values', () => {
    expect(valued.length).toBeGreaterThan(30);
  });

  it.each(valued)('%s takes no empty value', (_name, option) => {
    for (const empty of ['', ' '])
      expect(() => option.parseArg?.(empty, undefined as never)).toThrow(expect.objectContaining({ code: 'commander.invalidArgument' }));
    expect(option.parseArg).toBeTypeOf('function');
  });
});
