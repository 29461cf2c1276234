import { Command, Option } from 'commander';
import { HARNESSES, PLACEMENTS, TRANSITIONS } from '../../core/run/types.ts';
import { addApproval } from './approval-program.ts';
import { DAY, durationArgument, idArgument, listOf, nameArgument, numberArgument } from './arguments.ts';
import { type Dispatch, type On, onWith, refuseEmptyValues } from './grammar.ts';
import { addPolicy } from './policy-program.ts';

const ROLES = ['user', 'approver', 'operator', 'policy'] as const;
const ENGINES = ['bubblewrap'] as const;

/** The whole grammar of the command line. `version` is printed by `--version`. */
export function buildProgram(version: string, dispatch: Dispatch): Command {
  const program = new Command('outwork')
    .description('Runs AI agents outside the walls: trusted kernel, sandboxed executor, one policy for every capability call.')
    .version(version)
    .option('--json', 'one JSON document on standard output, all else on standard error')
    .option('--state <dir>', 'state directory (default: $XDG_STATE_HOME/outwork)')
    .option('--config <file>', 'configuration file (default: OUTWORK_CONFIG, ./outwork.yaml, $XDG_CONFIG_HOME/outwork/outwork.yaml)')
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false)
    .addHelpText(
      'after',
      '\nExit codes: 0 good, 1 done and not good, 2 usage, 3 something is missing, 4 refused, 5 parked, 130 interrupted.\nText that starts with a dash comes after `--`.',
    );

  const on = onWith(dispatch);
  addSetup(program, on);
  addRun(program, on);
  addRows(program, on);
  addApproval(program, on);
  addPolicy(program, on);
  refuseEmptyValues(program);
  return program;
}

function addSetup(program: Command, on: On): void {
  program
    .command('doctor')
    .description('check what this machine must have; exit 3 when something required is missing')
    .action(on(async () => (await import('./commands/doctor.ts')).doctor));
  program
    .command('setup')
    .description('install and prepare what is missing; can be repeated')
    .option('--full', 'also what is needed to edit policies and to run all tests (Go, OPA, Chromium)')
    .option('--dry-run', 'only say what would be done')
    .option('--undo', 'take back what earlier set-ups added')
    .option('--delete-state', 'with --undo: also the state directory with everything in it')
    .action(on(async () => (await import('./commands/setup.ts')).setup));
  const config = program.command('config').description('the configuration that applies');
  config
    .command('show')
    .description('every value and where it came from')
    .action(on(async () => (await import('./commands/config.ts')).configShow));
  config
    .command('check')
    .description('check the file; exit 4 when it is not good')
    .action(on(async () => (await import('./commands/config.ts')).configCheck));
}

function addRun(program: Command, on: On): void {
  program
    .command('run')
    .description('post a message, follow its run, print the reply')
    .argument('<message>', 'text, or - for standard input')
    .requiredOption('--user <name>', 'user it is from', nameArgument)
    .option('--tenant <name>', 'tenant of the user (default: default)', nameArgument)
    .option('--thread <id>', 'thread to go on with', idArgument('thr'))
    .addOption(new Option('--placement <name>', 'placement of this run, over the configured one').choices(PLACEMENTS))
    .addOption(new Option('--harness <name>', 'agent program, over the configured one').choices(HARNESSES))
    .option('--scenario <name>', 'scenario of the scripted model: a name or a path')
    .option('--wait', 'stay through gates until the run has ended')
    .action(on(async () => (await import('./commands/run.ts')).runCommand));
  program
    .command('serve')
    .description('run the kernel with its HTTP API until SIGTERM or Ctrl-C; twice leaves at once')
    .option('--listen <address:port>', 'where the API listens (default: api.listen, 127.0.0.1:7270); port 0 takes a free one')
    .action(on(async () => (await import('./commands/serve.ts')).serve));
  program
    .command('compare')
    .description('run the same turns under each placement and measure them')
    .addOption(new Option('--engine <names>', 'engines, comma-separated').argParser(listOf(ENGINES)).default(['bubblewrap'], 'bubblewrap'))
    .addOption(
      new Option('--placement <names>', 'placements, comma-separated, or all')
        .argParser(listOf(PLACEMENTS))
        .default([...PLACEMENTS], 'all'),
    )
    .option('--workload <name>', 'scenario: a name or a path', 'survey')
    .option('--turns <n>', 'measured turns per placement', numberArgument(1, 10_000), 10)
    .option('--concurrency <n>', 'users at once', numberArgument(1, 64), 1)
    .option('--out <dir>', 'write index.html and results.json there')
    .option('--quick', 'fewer turns, rougher figures')
    .action(on(async () => (await import('./commands/compare.ts')).compare));
}

function addRows(program: Command, on: On): void {
  const runs = program.command('runs').description('list, show, cancel and resolve runs');
  runs
    .command('ls')
    .description('list runs')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--thread <id>', 'of one thread', idArgument('thr'))
    .addOption(new Option('--in <states>', 'in these states, comma-separated').argParser(listOf(Object.keys(TRANSITIONS))))
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action(on(async () => (await import('./commands/runs.ts')).runsList));
  runs
    .command('show')
    .description('one run: attempts, calls, decisions, and what has to happen next')
    .argument('<run>', 'run id', idArgument('run'))
    .action(on(async () => (await import('./commands/runs.ts')).runsShow));
  runs
    .command('cancel')
    .description('cancel a run')
    .argument('<run>', 'run id', idArgument('run'))
    .action(on(async () => (await import('./commands/runs.ts')).runsCancel));
  runs
    .command('resolve')
    .description('say how the unknown call of a parked run ended')
    .argument('<run>', 'run id', idArgument('run'))
    .addOption(
      new Option('--as <how>', 'it happened, it did not (it runs again), or give the run up')
        .choices(['done', 'not-done', 'abort'])
        .makeOptionMandatory(),
    )
    .action(on(async () => (await import('./commands/runs.ts')).runsResolve));

  const thread = program.command('thread').description('list threads, show their messages');
  thread
    .command('ls')
    .description('list threads')
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action(on(async () => (await import('./commands/thread.ts')).threadList));
  thread
    .command('show')
    .description('messages of a thread')
    .argument('<thread>', 'thread id', idArgument('thr'))
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .action(on(async () => (await import('./commands/thread.ts')).threadShow));

  program
    .command('events')
    .description('follow the event log')
    .command('tail')
    .description('print events from a cursor on, then new ones as they come')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--thread <id>', 'of one thread', idArgument('thr'))
    .option('--run <id>', 'of one run', idArgument('run'))
    .option('--from <cursor>', 'events after this cursor', numberArgument(0, Number.MAX_SAFE_INTEGER), 0)
    .option('--no-follow', 'end with the last event there is')
    .action(on(async () => (await import('./commands/events.ts')).eventsTail));

  addSandboxes(program, on);
  addUsers(program, on);
}

function addSandboxes(program: Command, on: On): void {
  program
    .command('sandbox')
    .description('what runs in isolation, and its image')
    .command('image')
    .description('what sandboxes are made of')
    .command('build')
    .description('verify the image, and build it when it is not exactly what its sources make')
    .option('--force', 'build again what is up to date; sandboxes that run keep theirs')
    .action(on(async () => (await import('./commands/sandbox-image.ts')).imageBuild));
}

function addUsers(program: Command, on: On): void {
  const user = program.command('user').description('add, list, disable users; issue their tokens');
  user
    .command('add')
    .description('make a user')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .addOption(new Option('--role <roles>', 'roles, comma-separated (default: user)').argParser(listOf(ROLES)))
    .action(on(async () => (await import('./commands/user.ts')).userAdd));
  user
    .command('ls')
    .description('list users')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .action(on(async () => (await import('./commands/user.ts')).userList));
  user
    .command('disable')
    .description('refuse the tokens of a user and what is posted for it; what runs goes on')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .action(on(async () => (await import('./commands/user.ts')).userDisable));
  user
    .command('enable')
    .description('let a disabled user act again')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .action(on(async () => (await import('./commands/user.ts')).userEnable));
  user
    .command('token')
    .description('issue a bearer token; it is shown once')
    .option('--revoke', 'end every token of the user instead')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .option('--ttl <time>', 'how long it counts: 30m, 12h, 90d', durationArgument, 30 * DAY)
    .action(on(async () => (await import('./commands/user.ts')).userToken));
}
