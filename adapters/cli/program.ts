import { Command, Option } from 'commander';
import { PLACEMENTS, TRANSITIONS } from '../../core/run/types.ts';
import { addApproval } from './approval-program.ts';
import { DAY, durationArgument, idArgument, listOf, nameArgument, numberArgument } from './arguments.ts';
import type { CommandContext, GlobalOptions } from './context.ts';
import { addPolicy } from './policy-program.ts';

/** Runs a command's own file; it is loaded only when that command runs, so that help and version stay fast. */
export type Dispatch = (command: (context: CommandContext) => Promise<number>, global: GlobalOptions) => Promise<void>;

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

  /** Ties a command to its function; `run` gets the command's own options and arguments. */
  const on = (command: Command, run: (context: CommandContext) => Promise<number>) =>
    dispatch(run, command.optsWithGlobals() as GlobalOptions);

  addSetup(program, on);
  addRun(program, on);
  addRows(program, on);
  addApproval(program, on);
  addPolicy(program, on);
  return program;
}

export type On = (command: Command, run: (context: CommandContext) => Promise<number>) => Promise<void>;

function addSetup(program: Command, on: On): void {
  program
    .command('doctor')
    .description('check what this machine must have; exit 3 when something required is missing')
    .action((_options, command: Command) => on(command, async (context) => (await import('./commands/doctor.ts')).doctor(context)));
  program
    .command('setup')
    .description('install and prepare what is missing; can be repeated')
    .option('--full', 'also what is needed to edit policies and to run all tests (Go, OPA, Chromium)')
    .option('--dry-run', 'only say what would be done')
    .option('--undo', 'take back what earlier set-ups added')
    .option('--delete-state', 'with --undo: also the state directory with everything in it')
    .action((options, command: Command) => on(command, async (context) => (await import('./commands/setup.ts')).setup(context, options)));
  const config = program.command('config').description('the configuration that applies');
  config
    .command('show')
    .description('every value and where it came from')
    .action((_options, command: Command) => on(command, async (context) => (await import('./commands/config.ts')).configShow(context)));
  config
    .command('check')
    .description('check the file; exit 4 when it is not good')
    .action((_options, command: Command) => on(command, async (context) => (await import('./commands/config.ts')).configCheck(context)));
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
    .option('--harness <name>', 'agent program', nameArgument)
    .option('--scenario <name>', 'scenario of the scripted model: a name or a path')
    .option('--wait', 'stay through gates until the run has ended')
    .action((message, options, command: Command) =>
      on(command, async (context) => (await import('./commands/run.ts')).runCommand(context, message, options)),
    );
  program
    .command('serve')
    .description('run the kernel with its HTTP API until SIGTERM or Ctrl-C; twice leaves at once')
    .option('--listen <address:port>', 'where the API listens (default: api.listen, 127.0.0.1:7270); port 0 takes a free one')
    .action((options, command: Command) => on(command, async (context) => (await import('./commands/serve.ts')).serve(context, options)));
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
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/compare.ts')).compare(context, options)),
    );
}

function addRows(program: Command, on: On): void {
  const runs = program.command('runs').description('runs');
  runs
    .command('ls')
    .description('list runs')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--thread <id>', 'of one thread', idArgument('thr'))
    .addOption(new Option('--in <states>', 'in these states, comma-separated').argParser(listOf(Object.keys(TRANSITIONS))))
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/runs.ts')).runsList(context, { ...options, state: options.in })),
    );
  runs
    .command('show')
    .description('one run: attempts, calls, decisions, and what has to happen next')
    .argument('<run>', 'run id', idArgument('run'))
    .action((id, _options, command: Command) => on(command, async (context) => (await import('./commands/runs.ts')).runsShow(context, id)));
  runs
    .command('cancel')
    .description('cancel a run')
    .argument('<run>', 'run id', idArgument('run'))
    .action((id, _options, command: Command) =>
      on(command, async (context) => (await import('./commands/runs.ts')).runsCancel(context, id)),
    );
  runs
    .command('resolve')
    .description('say how the unknown call of a parked run ended')
    .argument('<run>', 'run id', idArgument('run'))
    .addOption(
      new Option('--as <how>', 'it happened, it did not (it runs again), or give the run up')
        .choices(['done', 'not-done', 'abort'])
        .makeOptionMandatory(),
    )
    .action((id, options, command: Command) =>
      on(command, async (context) => (await import('./commands/runs.ts')).runsResolve(context, id, options.as)),
    );

  const thread = program.command('thread').description('threads and their messages');
  thread
    .command('ls')
    .description('list threads')
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .option('--limit <n>', 'at most so many', numberArgument(1, 1000), 50)
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/thread.ts')).threadList(context, options)),
    );
  thread
    .command('show')
    .description('messages of a thread')
    .argument('<thread>', 'thread id', idArgument('thr'))
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .action((id, options, command: Command) =>
      on(command, async (context) => (await import('./commands/thread.ts')).threadShow(context, id, options)),
    );

  program
    .command('events')
    .description('the event log')
    .command('tail')
    .description('print events from a cursor on, then new ones as they come')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .option('--thread <id>', 'of one thread', idArgument('thr'))
    .option('--run <id>', 'of one run', idArgument('run'))
    .option('--from <cursor>', 'events after this cursor', numberArgument(0, Number.MAX_SAFE_INTEGER), 0)
    .option('--no-follow', 'end with the last event there is')
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/events.ts')).eventsTail(context, options)),
    );

  addSandboxes(program, on);
  addUsers(program, on);
}

function addSandboxes(program: Command, on: On): void {
  program
    .command('sandbox')
    .description('sandboxes')
    .command('image')
    .description('what sandboxes are made of')
    .command('build')
    .description('verify the image, and build it when it is not exactly what its sources make')
    .option('--force', 'build again what is up to date; sandboxes that run keep theirs')
    .action((options, command: Command) =>
      on(command, async (context) => (await import('./commands/sandbox-image.ts')).imageBuild(context, options)),
    );
}

function addUsers(program: Command, on: On): void {
  const user = program.command('user').description('users and their tokens');
  user
    .command('add')
    .description('make a user')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .addOption(new Option('--role <roles>', 'roles, comma-separated (default: user)').argParser(listOf(ROLES)))
    .action((name, options, command: Command) =>
      on(command, async (context) => (await import('./commands/user.ts')).userAdd(context, name, options)),
    );
  user
    .command('ls')
    .description('list users')
    .option('--tenant <name>', 'of one tenant', nameArgument)
    .action((options, command: Command) => on(command, async (context) => (await import('./commands/user.ts')).userList(context, options)));
  const switchUser = (verb: 'disable' | 'enable', description: string) =>
    user
      .command(verb)
      .description(description)
      .argument('<name>', 'name', nameArgument)
      .option('--tenant <name>', 'tenant (default: default)', nameArgument)
      .action((name, options, command: Command) =>
        on(command, async (context) => (await import('./commands/user.ts')).userSwitch(context, name, verb === 'disable', options)),
      );
  switchUser('disable', 'refuse the tokens of a user and what is posted for it; what runs goes on');
  switchUser('enable', 'let a disabled user act again');
  user
    .command('token')
    .description('issue a bearer token; it is shown once')
    .option('--revoke', 'end every token of the user instead')
    .argument('<name>', 'name', nameArgument)
    .option('--tenant <name>', 'tenant (default: default)', nameArgument)
    .option('--ttl <time>', 'how long it counts: 30m, 12h, 90d', durationArgument, 30 * DAY)
    .action((name, options, command: Command) =>
      on(command, async (context) => (await import('./commands/user.ts')).userToken(context, name, options)),
    );
}
