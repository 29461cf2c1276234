import { type Command, Option } from 'commander';
import { POLICY_KINDS } from '../../core/policy/contracts.ts';
import { DAY, durationArgument, idArgument, nameArgument } from './arguments.ts';
import type { On } from './grammar.ts';

/** The grammar of `outwork policy`. */
export function addPolicy(program: Command, on: On): void {
  const policy = program.command('policy').description('build, test, explain and change the rules');
  policy
    .command('build')
    .description('compile the rules')
    .option('--sign <key>', 'also sign rules, data and version with this Ed25519 private key (PEM)')
    .action(on(async () => (await import('./commands/policy.ts')).policyBuild));
  policy
    .command('test')
    .description('every gate of the rules; ends at the first fault')
    .action(on(async () => (await import('./commands/policy.ts')).policyTest));
  policy
    .command('check')
    .description('every gate and a replay of recorded decisions on one screen; exit 1 when one fails')
    .option('--since <time>', 'replay decisions no older than this: 30m, 12h, 30d', durationArgument, 30 * DAY)
    .action(on(async () => (await import('./commands/policy.ts')).policyCheck));
  policy
    .command('explain')
    .description('why a decision was made, rule by rule')
    .argument('[decision]', 'decision id', idArgument('dec'))
    .option('--input <file>', 'a question of your own instead: JSON as rules see it')
    .action(on(async () => (await import('./commands/policy-explain.ts')).policyExplain));
  policy
    .command('replay')
    .description('what the rules on disk would have decided; exit 1 when they allow more')
    .addOption(
      new Option('--since <time>', 'decisions no older than this: 30m, 12h, 30d').argParser(durationArgument).makeOptionMandatory(),
    )
    .option('--bundle <dir>', 'another bundle root than the configured one')
    .option('--allow-widening', 'exit 0 even when more is allowed')
    .action(on(async () => (await import('./commands/policy-replay.ts')).policyReplay));
  policy
    .command('new')
    .description('begin something')
    .command('rule')
    .description('write a rule and its test, in the site’s rules when policies.dir is configured')
    .argument('<name>', 'its code: lower-case letters, digits and _')
    .addOption(new Option('--kind <kind>', 'what it is asked about').choices(POLICY_KINDS).default('call'))
    .addOption(new Option('--effect <effect>', 'what it does').choices(['deny', 'ask']).default('deny'))
    .action(on(async () => (await import('./commands/policy-new.ts')).policyNewRule));
  addPolicyChanges(policy, on);
}

function addPolicyChanges(policy: Command, on: On): void {
  policy
    .command('apply')
    .description('load what is on disk through every gate')
    .option('--allow-widening', 'also when it allows more than what runs; needs --user')
    .option('--user <name>', 'who says so: a user with the role policy', nameArgument)
    .option('--tenant <name>', 'tenant of the user (default: default)', nameArgument)
    .action(on(async () => (await import('./commands/policy-apply.ts')).policyApply));
  policy
    .command('rollback')
    .description('let an earlier snapshot run again')
    .argument('<digest>', 'digest of the snapshot, or its first eight characters or more')
    .requiredOption('--user <name>', 'who says so: a user with the role policy', nameArgument)
    .option('--tenant <name>', 'tenant of the user (default: default)', nameArgument)
    .action(on(async () => (await import('./commands/policy-apply.ts')).policyRollback));
  policy
    .command('status')
    .description('what runs, since when, and what can be rolled back to')
    .action(on(async () => (await import('./commands/policy-apply.ts')).policyStatus));
}
