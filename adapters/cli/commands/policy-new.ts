import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../../../core/errors.ts';
import type { PolicyKind } from '../../../core/policy/contracts.ts';
import { type CommandContext, configOf } from '../context.ts';
import { EXIT } from '../exit-code.ts';

export interface NewRuleOptions {
  readonly kind: PolicyKind;
  readonly effect: 'deny' | 'ask';
}

interface Example {
  readonly condition: string;
  /** Lines before the rule, when it needs a helper. */
  readonly imports?: string;
  readonly met: string;
  readonly not: string;
}

/** A condition that a reader will recognise as an example, and a question that meets it, by kind. */
const EXAMPLE: Readonly<Record<PolicyKind, Example>> = {
  call: {
    condition: 'input.capability == "shell.exec"\n\tinput.args.argv[0] == "change-me"',
    met: '{"capability": "shell.exec", "args": {"argv": ["change-me"]}}',
    not: '{"capability": "shell.exec", "args": {"argv": ["make"]}}',
  },
  placement: { condition: 'input.placement == "change-me"', met: '{"placement": "change-me"}', not: '{"placement": "host-loop-shell"}' },
  approval: {
    condition: 'input.approver.user == "change-me"',
    met: '{"approver": {"user": "change-me"}}',
    not: '{"approver": {"user": "bob"}}',
  },
  egress: {
    condition: 'hosts.matches("change-me.example.com", input.host)',
    imports: 'import data.outwork.lib.hosts\n\n',
    met: '{"host": "change-me.example.com"}',
    not: '{"host": "change-me.example.com.evil.test"}',
  },
  trigger: {
    condition: 'input.action == "create"\n\tinput.schedule == "change-me"',
    met: '{"action": "create", "schedule": "change-me"}',
    not: '{"action": "delete", "schedule": "change-me"}',
  },
};

/** Kinds of which a question can wait for a person. */
const ASKED: readonly PolicyKind[] = ['call', 'trigger'];

/**
 * Writes a rule and its test that pass every gate as they are: in the site's rules when `policies.dir` is configured, else in the bundle.
 * @throws UsageError `usage` for a name that is none, or an effect that the kind does not know; `conflict` when a file is there;
 *   `invalid_argument` when its folder cannot be written
 */
export async function policyNewRule(context: CommandContext, name: string, { kind, effect }: NewRuleOptions): Promise<number> {
  if (!/^[a-z][a-z0-9_]{2,62}$/.test(name))
    throw new UsageError('usage', 'The name of a rule is its code: lower-case letters, digits and _.');
  if (effect === 'ask' && !ASKED.includes(kind))
    throw new UsageError('usage', `Only ${ASKED.join(' and ')} can wait for a person, not ${kind}.`);
  const { dir, siteDir } = configOf(context).policy;
  const root = siteDir ?? dir;
  const folder = join(root, siteDir === undefined ? 'outwork' : 'site', kind);
  const files = [join(folder, `${name}.rego`), join(folder, `${name}_test.rego`)] as const;
  const taken = files.find((file) => existsSync(file));
  if (taken !== undefined) throw new UsageError('conflict', `${taken} is there already`);
  const of = `${siteDir === undefined ? 'outwork' : 'site'}.${kind}`;
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(files[0], ruleText(of, name, kind, effect));
    await writeFile(files[1], testText(of, name, kind, effect));
  } catch (cause) {
    throw new UsageError('invalid_argument', `${folder} cannot be written: ${(cause as Error).message}`, { cause });
  }
  if (context.out.json) context.out.document({ rule: files[0], test: files[1] });
  else {
    for (const file of files) context.out.line(file);
    context.out.note('next: edit both, then outwork policy build and outwork policy check');
  }
  return EXIT.good;
}

const ruleText = (of: string, name: string, kind: NewRuleOptions['kind'], effect: string): string => `package ${of}

${EXAMPLE[kind].imports ?? ''}# METADATA
# title: ${name.replaceAll('_', ' ')}
# schemas:
#   - input: schema.input.${kind}
# custom:
#   code: ${name}
#   threat: name-the-threat
#   solution: Say what a person does who meets this.
${effect} contains {
	"code": rego.metadata.rule().custom.code,
	"message": "Say why, for the agent and for people.",
} if {
	${EXAMPLE[kind].condition}
}
`;

const testText = (of: string, name: string, kind: NewRuleOptions['kind'], effect: string): string => `package ${of}_test

import data.${of}

_${name}(question) := {reason.code | some reason in reasons} if {
	reasons := ${kind}.${effect} with input as question
}

test_fail_${name} if "${name}" in _${name}(${EXAMPLE[kind].met})

test_success_not_${name} if not "${name}" in _${name}(${EXAMPLE[kind].not})
`;
