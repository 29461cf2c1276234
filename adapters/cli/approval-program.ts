import { type Command, Option } from 'commander';
import { APPROVAL_STATES } from '../../core/approval/types.ts';
import { idArgument, listOf, nameArgument, numberArgument } from './arguments.ts';
import type { On } from './program.ts';

/** `outwork approval …`. */
export function addApproval(program: Command, on: On): void {
  const approval = program.command('approval').description('calls that wait for a person');
  approval
    .command('ls')
    .description('list asks; without --in those that wait for an answer')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--run <id>', 'of one run', idArgument('run'))
    .addOption(new Option('--in <states>', 'in these states, comma-separated, or all').argParser(listOf(APPROVAL_STATES)))
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/approval.ts')).approvalList(context, { ...options, state: options.in })),
    );
  approval
    .command('show')
    .description('what is asked, with every character visible, and the files it pins')
    .argument('<approval>', 'approval id', idArgument('apr'))
    .action((id, _options, command: Command) =>
      on(command, async (context) => (await import('./commands/approval.ts')).approvalShow(context, id)),
    );
  for (const [answer, does] of [
    ['approve', 'let the call happen once, exactly as shown'],
    ['deny', 'refuse the call; its run goes on and is told'],
  ] as const) {
    approval
      .command(answer)
      .description(does)
      .argument('<approval>', 'approval id', idArgument('apr'))
      .option('--note <text>', 'for the record; of a denial the agent reads it too')
      .action((id, options, command: Command) =>
        on(command, async (context) => (await import('./commands/approval.ts')).approvalAnswer(context, id, answer, options)),
      );
  }
}
