/** Text that is HTML already. Everything else that goes into `html` is escaped. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Markup | string | number | readonly Markup[];

/** A template whose parts are escaped, in text and in quoted attributes, unless they are `Markup`. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.map((string, index) => string + (index < parts.length ? rendered(parts[index] ?? '') : '')).join(''));
}

function rendered(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (typeof part === 'object') return part.map((item) => item.text).join('');
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
