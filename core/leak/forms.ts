/** One way a secret value can be written: as it is, or encoded. */
export interface Form {
  readonly text: string;
  readonly encoding: 'plain' | 'json' | 'percent' | 'hex' | 'base64';
}

/** Every form of a value that is looked for. Base64 in all three alignments, without the characters that its neighbours decide. */
export function formsOf(value: string): readonly Form[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  const percent = hex.replace(/../g, '%$&');
  const json = inJson(value);
  const forms: Form[] = [
    { text: value, encoding: 'plain' },
    { text: json, encoding: 'json' },
    { text: inJson(json), encoding: 'json' },
    { text: uriEncoded(value), encoding: 'percent' },
    { text: percent, encoding: 'percent' },
    { text: percent.toUpperCase(), encoding: 'percent' },
    { text: hex, encoding: 'hex' },
    { text: hex.toUpperCase(), encoding: 'hex' },
  ];
  for (const before of [0, 1, 2]) {
    const core = base64Core(bytes, before);
    forms.push({ text: core, encoding: 'base64' }, { text: core.replaceAll('+', '-').replaceAll('/', '_'), encoding: 'base64' });
  }
  const seen = new Set<string>();
  return forms.filter(({ text, encoding }) => {
    const fresh = !seen.has(text) && (encoding === 'plain' || text.length >= MIN_FORM);
    seen.add(text);
    return fresh;
  });
}

/** A shorter encoded form would be found by chance. */
const MIN_FORM = 8;

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

const uriEncoded = (text: string): string => encodeURIComponent(text.toWellFormed());

/** The characters of a base64 text that `bytes` alone decide when `before` bytes of a group of three stand in front. */
function base64Core(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
  const bits = (before + bytes.length) * 8;
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
}

/** Why a value cannot be kept as a secret: it would be found everywhere and take ordinary text with it. Undefined when it can. */
export function secretFault(value: string): 'too_short' | 'too_plain' | undefined {
  if (value.length < MIN_SECRET) return 'too_short';
  return new Set(value).size < MIN_DISTINCT ? 'too_plain' : undefined;
}

const MIN_SECRET = 8;
const MIN_DISTINCT = 4;
