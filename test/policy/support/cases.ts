import type { EffectClass } from '../../../core/capability/types.ts';
import type { PolicyInput } from '../../../core/policy/types.ts';
import { callInput, placementInput, plainInput, shellInput } from './inputs.ts';

/** One question to the shipped policy with the shipped data. */
export interface PolicyCase {
  readonly note: string;
  readonly input: PolicyInput;
  readonly effect: 'allow' | 'ask' | 'deny';
  readonly codes: readonly string[];
  /** Class that the decision lowers the call to; undefined leaves it. */
  readonly lowered?: EffectClass;
}

const allowed = (note: string, input: PolicyInput): PolicyCase => ({ note, input, effect: 'allow', codes: ['capability_allowed'] });
const denied = (note: string, input: PolicyInput, ...codes: string[]): PolicyCase => ({ note, input, effect: 'deny', codes });
const lowered = (command: string, effectClass: EffectClass): PolicyCase => ({
  ...allowed(`${command} → ${effectClass}`, shellInput(command.split(' '))),
  lowered: effectClass,
});
const once = (command: string): PolicyCase => allowed(`${command} stays once`, shellInput(command.split(' ')));
const unknown = (change: object): PolicyInput => ({ ...callInput(), ...change }) as PolicyInput;

export const CASES: readonly PolicyCase[] = [
  allowed('executor: model.generate', plainInput('model.generate')),
  allowed('executor: fs.write', plainInput('fs.write')),
  allowed('product: fs.read', plainInput('fs.read', { caller: 'product' })),
  allowed('operator: thread.read', plainInput('thread.read', { caller: 'operator' })),
  allowed('executor: checkpoint.save', plainInput('checkpoint.save')),
  allowed('executor: message.post', plainInput('message.post')),
  denied('product: model.generate', plainInput('model.generate', { caller: 'product' }), 'no_rule_allows'),
  denied('operator: message.post', plainInput('message.post', { caller: 'operator' }), 'no_rule_allows'),
  denied('unknown capability', unknown({ capability: 'sandbox.manage' }), 'no_rule_allows'),
  denied('unknown caller', unknown({ caller: 'guest' }), 'no_rule_allows'),
  lowered('git log', 'pure'),
  lowered('git log --oneline -n 20 -- src', 'pure'),
  lowered('/usr/bin/git log -5', 'pure'),
  lowered('git status --porcelain=v2', 'idempotent'),
  lowered('git show --stat HEAD', 'pure'),
  lowered('git ls-files -z', 'pure'),
  lowered('git rev-parse --short HEAD', 'pure'),
  lowered('ls -la', 'pure'),
  lowered('cat -n README.md', 'pure'),
  lowered('head -n 5 a b', 'pure'),
  lowered('wc -l a', 'pure'),
  lowered('grep -rn -A3 needle .', 'pure'),
  lowered('rg --glob=*.ts needle', 'pure'),
  lowered('find . -maxdepth 2 -name *.ts -print0', 'pure'),
  once('git -c core.pager=touch log'),
  once('git -C /elsewhere log'),
  once('git --exec-path=/x log'),
  once('git log --output=x'),
  once('git log --outp=x'),
  once('git log --ext-diff'),
  once('git log -p'),
  once('git show --textconv HEAD'),
  once('git push'),
  once('git commit -m log'),
  once('/workspace/bin/git log'),
  once('./ls'),
  once('find . -name x -delete'),
  once('find . -exec rm {} ;'),
  once('find . -execdir rm {} ;'),
  once('find . -ok rm {} ;'),
  once('find . -fprint x'),
  once('find . -fls x'),
  once('rg --pre ./x needle'),
  once('rg --pre=./x needle'),
  once('rg --hostname-bin=./x needle'),
  once('rg -z needle'),
  once('sort -o x a'),
  once('sed -n p a'),
  once('tail -f log'),
  once('env ls'),
  once('sh -c ls'),
  allowed('a cut list of arguments stays once', shellInput(['git', 'log'], { argv_length: 80 })),
  allowed('a cut argument stays once', shellInput(['git', 'log', `${'a'.repeat(511)}…`])),
  allowed('git with GIT_PAGER stays once', shellInput(['git', 'log'], { env: ['GIT_PAGER'] })),
  allowed('in the background it stays once', shellInput(['ls'], { background: true })),
  { ...allowed('a plain environment may be set', shellInput(['ls'], { env: ['LANG', 'TZ'] })), lowered: 'pure' },
  { note: 'own harness in the kernel', input: placementInput(), effect: 'allow', codes: ['placement_allowed'] },
  {
    note: 'foreign harness in a sandbox',
    input: placementInput({ harness: 'acme', placement: 'persistent-per-user' }),
    effect: 'allow',
    codes: ['placement_allowed'],
  },
  denied('foreign harness in the kernel', placementInput({ harness: 'acme' }), 'harness_needs_sandbox'),
  denied('production is not reviewed', placementInput({ profile: 'production' }), 'placement_not_reviewed'),
  denied(
    'both faults of a placement are told',
    placementInput({ profile: 'production', harness: 'acme' }),
    'harness_needs_sandbox',
    'placement_not_reviewed',
  ),
];
