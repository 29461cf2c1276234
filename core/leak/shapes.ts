import type { Span } from './exact.ts';

/** A kind of credential that is known by its look. */
export interface Shape {
  readonly name: string;
  /**
   * Something short that every match holds, written so that it begins with a character that text rarely has: the look-behind has the rest.
   * Most texts have none, and are not looked at again.
   */
  readonly hint: RegExp;
  /** Global. Group `secret` is the part that is one; without it the whole match. */
  readonly pattern: RegExp;
  /** What the pattern cannot say: true when a match is none after all. */
  readonly except?: (match: string) => boolean;
}

export interface ShapeSpan extends Span {
  readonly name: string;
}

/** Bits per character of a text, by how often each character is in it. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

/** Stand-ins of documentation and tests: the same character over and over, runs of the alphabet, words that say so. */
function standIn(match: string): boolean {
  return entropyOf(match) < 3.2 || /example|x{6}|\*{4}|0{8}|1234567890|abcdefgh/i.test(match);
}

/** A header that names an algorithm and a payload that is an object; `alg: none` proves nothing to anybody. */
function notJwt(match: string): boolean {
  try {
    const [head = '', body = ''] = match.split('.');
    const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString('utf8')) as { alg?: unknown };
    JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    return typeof alg !== 'string' || alg === 'none';
  } catch {
    return true;
  }
}

/** Placeholders of shells, templates and manuals where a password would stand. */
const wordy = (match: string): boolean =>
  /[$<>{}[\]*%\\]|pass(word|wd)?\b|secret|token|user|foo|bar|test|admin|guest/i.test(match) || entropyOf(match) < 2.5;

/** Every known shape. Each row has examples of what it finds and what it does not in `test/core/leak/shapes.test.ts`. */
export const SHAPES: readonly Shape[] = [
  {
    name: 'github_token',
    hint: /_(?<=gh[pousr]_|github_pat_)/,
    pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b/g,
    except: standIn,
  },
  {
    name: 'gitlab_token',
    hint: /-(?<=gl(?:pat|dt|rt|ptt|cbt|soat)-)/,
    pattern: /\bgl(?:pat|dt|rt|ptt|cbt|soat)-[A-Za-z0-9_-]{20,128}/g,
    except: standIn,
  },
  {
    name: 'aws_access_key',
    hint: /[KS](?<=A[KS])IA/,
    pattern: /\b(?:AKIA|ASIA)[A-Z2-7]{16}\b/g,
    except: (match) => match.endsWith('EXAMPLE'),
  },
  {
    name: 'aws_secret_key',
    hint: /[wW](?<=[aA][wW])[sS]/,
    pattern: /\baws.{0,20}?secret.{0,20}?["'\s:=]{1,6}(?<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/gi,
    except: (match) => /EXAMPLEKEY$/.test(match),
  },
  { name: 'slack_token', hint: /-(?<=xox[abeoprs]-)/, pattern: /\bxox[abeoprs]-(?:\d+-)*[A-Za-z0-9-]{20,200}/g, except: standIn },
  {
    name: 'slack_webhook',
    hint: /\.(?<=hooks\.)slack/,
    pattern: /\bhooks\.slack\.com\/services\/T[A-Z0-9]{6,12}\/B[A-Z0-9]{6,12}\/[A-Za-z0-9]{20,32}/g,
  },
  { name: 'anthropic_key', hint: /-(?<=sk-)ant-/, pattern: /\bsk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,200}/g, except: standIn },
  {
    name: 'openai_key',
    hint: /-(?<=sk-)/,
    pattern: /\bsk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,200}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})\b/g,
    except: standIn,
  },
  {
    name: 'stripe_key',
    hint: /_(?<=[rs]k_live_|whsec_)/,
    pattern: /\b(?:[rs]k_live_[A-Za-z0-9]{24,247}|whsec_[A-Za-z0-9+/]{32,64})/g,
    except: standIn,
  },
  { name: 'npm_token', hint: /_(?<=npm_)/, pattern: /\bnpm_[A-Za-z0-9]{36}\b/g, except: standIn },
  { name: 'pypi_token', hint: /-(?<=pypi-)/, pattern: /\bpypi-AgE[A-Za-z0-9_-]{50,255}/g },
  { name: 'google_api_key', hint: /z(?<=AIz)a/, pattern: /\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g, except: standIn },
  { name: 'google_oauth_token', hint: /\.(?<=ya29\.)/, pattern: /\bya29\.[A-Za-z0-9_-]{30,255}/g, except: standIn },
  { name: 'sendgrid_key', hint: /\.(?<=SG\.)/, pattern: /\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g },
  { name: 'huggingface_token', hint: /_(?<=hf_)/, pattern: /\bhf_[A-Za-z0-9]{34}\b/g, except: standIn },
  { name: 'digitalocean_token', hint: /_(?<=do[opr]_v1_)/, pattern: /\bdo[opr]_v1_[a-f0-9]{64}\b/g },
  {
    name: 'private_key',
    hint: /VATE KEY/,
    pattern:
      /-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?<secret>[\sA-Za-z0-9+/=\\:,.-]{64,16384}?)(?:-----END|(?![\sA-Za-z0-9+/=\\:,.-])|$)/g,
    except: (match) => entropyOf(match) < 4,
  },
  {
    name: 'jwt',
    hint: /J(?<=eyJ)/,
    pattern: /\beyJ[A-Za-z0-9_-]{10,2048}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{20,1024}/g,
    except: notJwt,
  },
  {
    name: 'url_password',
    hint: /:\/\/[^\s/@]{6,200}@/,
    pattern: /(?<=\b[a-z][a-z0-9+.-]{1,15}):\/\/[^\s/@:"'`<>]{0,64}:(?<secret>[^\s/@:"'`<>]{6,128})@[A-Za-z0-9[]/g,
    except: wordy,
  },
  {
    name: 'url_token',
    hint: /:\/\/[^\s/@]{20,255}@/,
    pattern: /\bhttps?:\/\/(?<secret>[A-Za-z0-9_-]{20,255})@[A-Za-z0-9[]/g,
    except: standIn,
  },
  {
    name: 'authorization_header',
    hint: /[zZ](?<=[uU][tT][hH][oO][rR][iI][zZ])/,
    pattern: /\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:basic|bearer|token)\s{1,4}(?<secret>[A-Za-z0-9+/=._~-]{16,4096})/gi,
    except: standIn,
  },
];

const HINTS = SHAPES.map(({ hint }) => hint.source).join('|');
/** Places looked at one by one: in text that has more, each hint is looked for by itself. */
const MAX_PLACES = 256;

/** The shapes whose hint a text holds: one look for all, which stops where one of them begins. */
function hintedBy(text: string): readonly Shape[] {
  const any = new RegExp(HINTS, 'g');
  let match = any.exec(text);
  if (match === null) return [];
  let left = SHAPES.map((shape) => ({ shape, here: new RegExp(shape.hint, 'y') }));
  for (let places = 0; match !== null && places < MAX_PLACES; places += 1) {
    const { index } = match;
    left = left.filter(({ here }) => {
      here.lastIndex = index;
      return !here.test(text);
    });
    // One hint may begin inside of another.
    any.lastIndex = index + 1;
    match = any.exec(text);
  }
  if (match !== null) left = left.filter(({ shape }) => !shape.hint.test(text));
  return SHAPES.filter((shape) => left.every((other) => other.shape !== shape));
}

/** Every known shape in a text, in the order of the table. */
export function findShapes(text: string): ShapeSpan[] {
  const spans: ShapeSpan[] = [];
  for (const { name, pattern, except } of hintedBy(text)) {
    for (const match of text.matchAll(pattern)) {
      const secret = match.groups?.secret ?? match[0];
      if (except?.(secret) === true) continue;
      const start = match.index + match[0].lastIndexOf(secret);
      spans.push({ name, start, end: start + secret.length });
    }
  }
  return spans;
}
