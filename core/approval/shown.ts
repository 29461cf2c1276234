import type { CapabilityDescriptor } from '../capability/descriptors.ts';
import { scrubText } from '../capability/redact.ts';
import type { CallScope, Reason, ShellExecArgs } from '../capability/types.ts';
import { canonicalJson, type Json, sha256Hex } from '../json.ts';
import { SAFETY } from '../limits.ts';
import type { Ceiling, ReferencedFile, Shown, ShownWarning } from './types.ts';
import { quoted, visible, warningsOf } from './visible-text.ts';

export interface ToShow {
  readonly scope: Pick<CallScope, 'tenant' | 'user' | 'thread' | 'run'>;
  readonly descriptor: CapabilityDescriptor;
  readonly args: Json;
  readonly ceiling: Ceiling;
  readonly files: readonly ReferencedFile[];
  /** Text of each file, where it is text; it is searched for what hides, not printed here. */
  readonly fileTexts: readonly (string | undefined)[];
  readonly reasons: readonly Reason[];
  readonly codeInArgument: boolean;
  /** Live secrets: replaced before anything is shown. */
  readonly secrets: readonly string[];
}

/** Of content (a message, a file to be written, input of a command) this much is printed; its size and digest say the rest. */
const CONTENT_CHARACTERS = 8 * 1024;

/**
 * What an approver is shown. Equal for equal questions: it holds no time and no id but those of run and thread.
 * A command that is too long to be read is no command to approve (`approval_too_long`).
 */
export function shownOf(what: ToShow): Shown | Reason {
  const { scope, descriptor, ceiling, files, reasons } = what;
  const page = new Page(what.secrets);
  page.line(`${descriptor.name} for ${scope.user} of ${scope.tenant}`);
  for (const { message } of reasons) page.line(`Why: ${visible(scrubText(message, what.secrets)).replaceAll('\n', ' ')}`);
  if (descriptor.name === 'shell.exec') command(page, what.args as unknown as ShellExecArgs);
  else if (descriptor.runsIn === 'gateway') page.line(`Arguments: ${quoted(canonicalJson(descriptor.project(what.args)))}`);
  else for (const [name, value] of Object.entries(what.args as { [name: string]: Json })) page.field(name, value);
  if (page.commandCharacters > SAFETY.approvalCommandCharacters)
    return {
      code: 'approval_too_long',
      message: `What cannot be read whole cannot be approved: more than ${SAFETY.approvalCommandCharacters} characters`,
    };
  page.line(ceilingText(ceiling));
  if (ceiling.startedBy === 'executor') {
    page.warn({
      kind: 'arguments_are_claimed',
      message: 'The arguments are what the executor says it will start; the line "May use" is what holds it.',
    });
  }
  if (what.codeInArgument)
    page.warn({ kind: 'code_in_argument', message: 'An argument is a program of its own; files that it starts are not pinned.' });
  for (const [at, file] of files.entries()) {
    page.line(`Pinned: ${quoted(file.path)}, ${file.size} bytes, sha256 ${file.sha256}. These bytes run, whatever the file holds by then.`);
    page.check(`the file ${quoted(file.path)}`, what.fileTexts[at] ?? '');
  }
  if (descriptor.runsIn === 'command') page.line(files.length > 0 ? 'What they load in turn is not pinned.' : NOTHING_PINNED);
  return page.done();
}

const NOTHING_PINNED = 'No file is pinned: what the command reads in the workspace may change before it runs.';

/** Variables that make a program load or run something that is not among its arguments. */
const LOADS_CODE =
  /^(LD_.*|DYLD_.*|PATH|HOME|ENV|BASH_ENV|BASH_FUNC_.*|ZDOTDIR|PYTHON.*|NODE_OPTIONS|NODE_PATH|PERL5?(LIB|OPT|DB)|RUBY(OPT|LIB)|LUA_.*|GIT_.*|PAGER|EDITOR|VISUAL|IFS|PS4|PROMPT_COMMAND)$/;

/** A variable that the command sets itself (`env LD_PRELOAD=x.so sh x`). */
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)\+?=/;

const loadsCode = (name: string): ShownWarning => ({
  kind: 'environment_loads_code',
  message: `The variable ${visible(name)} can change which code runs.`,
});

function command(page: Page, { argv, cwd = '.', env = {}, stdin, background, ...rest }: ShellExecArgs): void {
  page.words('Command', 'argument', argv);
  for (const word of argv) {
    const [, name] = ASSIGNMENT.exec(word) ?? [];
    if (name !== undefined && LOADS_CODE.test(name)) page.warn(loadsCode(name));
  }
  page.words('Directory', 'the directory', [cwd]);
  for (const [name, value] of Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))) {
    page.words(`Variable ${visible(name)}`, `the variable ${visible(name)}`, [value]);
    if (LOADS_CODE.test(name)) page.warn(loadsCode(name));
  }
  if (stdin !== undefined) page.field('input', stdin);
  // Whatever else a command may be asked with is shown too, also what this page knows no words for.
  for (const [name, value] of Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))) page.field(name, value as Json);
  if (background === true) page.line('It goes on in the background after the call.');
}

function ceilingText({ startedBy, leases, hosts, wallMs, outputBytes }: Ceiling): string {
  const credentials =
    leases.length === 0
      ? 'no credential'
      : `credentials ${leases.map(({ recipe, operations }) => `${recipe} (${operations.join(', ') || 'whatever it allows'})`).join(', ')}`;
  const network = hosts.length === 0 ? 'no host outside its sandbox' : `the hosts ${hosts.join(', ')}`;
  const who = startedBy === 'kernel' ? 'the kernel starts exactly this' : 'the executor starts it';
  return `May use: ${visible(credentials)}, ${visible(network)}, ${Math.ceil(wallMs / 1000)} s, ${outputBytes} bytes of each output; ${who}.`;
}

/** Lines as they come, with what was noticed on the way. */
class Page {
  commandCharacters = 0;
  readonly #secrets: readonly string[];
  readonly #lines: string[] = [];
  readonly #warnings: ShownWarning[] = [];

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  line(text: string): void {
    this.#lines.push(text);
  }

  warn(warning: ShownWarning): void {
    this.#warnings.push(warning);
  }

  check(where: string, text: string): void {
    this.#warnings.push(...warningsOf(where[0]?.toUpperCase() + where.slice(1), text));
  }

  /** Every word between quotes of its own, whole. */
  words(title: string, where: string, words: readonly string[]): void {
    const shown = words.map((word) => quoted(scrubText(word, this.#secrets)));
    this.commandCharacters += shown.reduce((sum, word) => sum + word.length + 1, 0);
    this.line(`${title}: ${shown.join(' ')}`);
    for (const [at, word] of words.entries()) this.check(words.length === 1 ? where : `${where} ${at}`, word);
  }

  /** Content may be longer than a person reads: its beginning, its size and its digest. */
  field(name: string, value: Json): void {
    if (typeof value !== 'string') {
      this.words(name, name, [canonicalJson(value)]);
      return;
    }
    const text = scrubText(value, this.#secrets);
    const cut = text.length > CONTENT_CHARACTERS;
    const head = cut ? text.slice(0, CONTENT_CHARACTERS).toWellFormed() : text;
    const rest = cut ? ` … ${Buffer.byteLength(value)} bytes in all, sha256 ${sha256Hex(value)}` : '';
    this.line(`${name}: ${quoted(head)}${rest}`);
    this.check(`the ${name}`, value);
    if (cut) this.warn({ kind: 'cut', message: `The ${name} is longer than what is shown of it.` });
  }

  done(): Shown {
    const warnings = this.#warnings.map(({ kind, message }) => ({ kind, message }));
    const text = [...this.#lines, ...warnings.map(({ message }) => `Warning: ${message}`)].join('\n');
    return { text, warnings };
  }
}
