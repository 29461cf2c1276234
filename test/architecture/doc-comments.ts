/** The text of a doc comment on one line. */
const flat = (comment: string): string =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, ''))
    .join(' ')
    .replace(/\{@link (\w+)\}/g, '$1')
    .trim();

/** The part of a source from a declaration to the line that closes it. @throws Error when it is not there */
export function declaration(source: string, name: string): string {
  const start = source.search(new RegExp(`^export (?:const|class|type|interface) ${name}\\b`, 'm'));
  const end = source.indexOf('\n}', start);
  if (start === -1 || end === -1) throw new Error(`no declaration of ${name}`);
  return source.slice(start, end);
}

/** Doc comments by the key that follows each. Where a key comes twice the first counts. */
export function keyComments(source: string): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  for (const [, comment = '', key = ''] of source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:readonly )?'?([\w.]+)'?\??:/g)) {
    if (!comments.has(key)) comments.set(key, flat(comment));
  }
  return comments;
}

export interface ErrorClassText {
  readonly name: string;
  readonly codes: readonly string[];
  readonly meaning: string;
}

/** Error classes of a source, each after the union of its codes. */
export function errorClasses(source: string): readonly ErrorClassText[] {
  const pattern =
    /export type \w+ErrorCode =((?:[^;/]|\/\*\*(?:(?!\*\/)[\s\S])*\*\/)+);\s*\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export class (\w+)/g;
  return [...source.matchAll(pattern)].map(([, union = '', comment = '', name = '']) => ({
    name,
    codes: [...union.matchAll(/'([\w]+)'/g)].map(([, code = '']) => code),
    meaning: flat(comment),
  }));
}
