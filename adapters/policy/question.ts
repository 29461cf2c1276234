import { readFile } from 'node:fs/promises';
import { Ajv } from 'ajv';
import { UsageError } from '../../core/errors.ts';
import { isMapping } from '../../core/json.ts';
import { regoSchema } from '../../core/policy/contract.ts';
import { CONTRACTS, POLICY_KINDS, type PolicyKind } from '../../core/policy/contracts.ts';
import { inputFault, textFault } from './bounds.ts';
import { notAsked, type Verdict } from './verdict.ts';

/** A question that somebody wrote, as rules see it. */
export interface Question {
  readonly file: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Fields that its contract does not have or that hold what it does not admit, in words. What is left out is none: a question may be short. */
  readonly strays: readonly string[];
}

/** @throws UsageError `invalid_argument` for a file that cannot be read, is no JSON object, or asks about no kind that there is */
export async function readQuestion(file: string): Promise<Question> {
  const input = await readObject(file);
  if (!isKind(input.kind)) {
    throw new UsageError('invalid_argument', `${file}: \`kind\` is none of ${POLICY_KINDS.join(', ')}`);
  }
  return { file, input, strays: straysOf(input.kind, input) };
}

/** The kernel's own denial of a question that it would not put to any rule; undefined when it would. */
export function boundsDenial(input: unknown): Verdict | undefined {
  const fault = inputFault(input) ?? textFault(JSON.stringify(input));
  return fault === undefined ? undefined : notAsked(fault);
}

async function readObject(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (isMapping(value)) return value;
  } catch (cause) {
    throw new UsageError('invalid_argument', `${file} cannot be read as JSON: ${(cause as Error).message}`, { cause });
  }
  throw new UsageError('invalid_argument', `${file} is not a JSON object`);
}

const isKind = (kind: unknown): kind is PolicyKind => POLICY_KINDS.includes(kind as PolicyKind);

function straysOf(kind: PolicyKind, input: Readonly<Record<string, unknown>>): readonly string[] {
  const fits = new Ajv({ strict: true, strictRequired: false, allErrors: true }).compile(regoSchema(CONTRACTS[kind]));
  if (fits(input)) return [];
  return (fits.errors ?? [])
    .filter(({ keyword }) => keyword !== 'required')
    .map(({ instancePath, message, params: { additionalProperty } }) =>
      additionalProperty === undefined
        ? `${instancePath} ${message}`
        : `${instancePath}/${additionalProperty} is no field of the kind ${kind}`,
    );
}
