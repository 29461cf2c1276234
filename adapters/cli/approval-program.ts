import { type Command, Option } from 'commander';
import { APPROVAL_STATES } from '../../core/approval/types.ts';
import { idArgument, listOf, nameArgument, numberArgument } from './arguments.ts';
import type { On } from './grammar.ts';

/** `outwork approval …`. */
export function addApproval(program: Command, on: On): void {
  const approval = program.command('approval').description('answer calls that wait for a person');
  approval
    .command('ls')
    .description('list asks; without --in those that wait for an answer')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--run <id>', 'of one run', idArgument('run'))
    .addOption(new Option('--in <states>', 'in these states, comma-separated, or all').argParser(listOf(APPROVAL_STATES)))
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action(on(async () => (await import('./commands/approval.ts')).approvalList));
  approval
    .command('show')
    .description('what is asked, with every character visible, and the files it pins')
    .argument('<approval>', 'approval id', idArgument('apr'))
    .action(on(async () => (await import('./commands/approval.ts')).approvalShow));
  approval
    .command('approve')
    .description('let the call happen once, exactly as shown')
    .argument('<approval>', 'approval id', idArgument('apr'))
    .option('--note <text>', 'for the record')
    .action(on(async () => (await import('./commands/approval.ts')).approvalApprove));
  approval
    .command('deny')
    .description('refuse the call; its run goes on and is told')
    .argument('<approval>', 'approval id', idArgument('apr'))
    .option('--note <text>', 'for the record; the agent reads it too')
    .action(on(async () => (await import('./commands/approval.ts')).approvalDeny));
}
