import { canonicalJson } from '../../core/json.ts';
import type { Bundle } from './bundle.ts';
import { dataFaults } from './site-data.ts';

/** What a change of a site's own is judged by. */
export type Judged = Pick<Bundle, 'site' | 'dataJson' | 'digests'>;

const NOTHING = { rules: {}, schemas: {} };

/**
 * Changes of a site's own rules and data that cannot be shown to allow no more, each in a few words. Nobody but the site knows what its
 * rules are about, so no question can be derived from them; what is judged is their form:
 *
 * - a rule file that is new only adds denials, asks and obligations that tighten, as long as no other file depends on it;
 * - data changes in the direction that its schema, as it was accepted, says narrows (`narrows`), or is new and no accepted rule names it.
 *
 * Everything else (a rule that is changed or gone, a schema that is changed, data without a direction) is told here, and counts as widening.
 */
export function unjudgedChanges(now: Judged, next: Judged): readonly string[] {
  const [before, after] = [now.site ?? NOTHING, next.site ?? NOTHING];
  // Rules that compile to the same module say the same, whatever is written about them.
  const rules = now.digests.rules === next.digests.rules ? [] : ruleFaults(before.rules, after.rules);
  return [...rules, ...settingsFaults(now, next)];
}

type Texts = Readonly<Record<string, string>>;

function ruleFaults(before: Texts, after: Texts): string[] {
  const faults = Object.entries(before).flatMap(([path, text]) => {
    if (after[path] === undefined) return [`${path} is gone`];
    return after[path] === text ? [] : [`${path} is changed`];
  });
  const added = Object.entries(after).filter(([path]) => before[path] === undefined);
  if (added.length === 0 || faults.length > 0) return faults;
  const looks = Object.entries(before).filter(([, text]) => looksAtOthers(text));
  if (looks.length > 0) return looks.map(([path]) => `${path} looks at other rules, and there are new ones`);
  const known = new Set(Object.values(before).flatMap((text) => words(text)));
  return added.flatMap(([path, text]) => {
    const shared = helpers(text).filter((name) => known.has(name));
    return shared.length === 0 ? [] : [`${path} defines ${shared.join(', ')}, which an accepted rule names`];
  });
}

function settingsFaults(now: Judged, next: Judged): string[] {
  const [before, after] = [settingsOf(now), settingsOf(next)];
  const rules = Object.values(now.site?.rules ?? {});
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const file = `data/${name}.yaml`;
    if (!Object.hasOwn(before, name)) {
      const named = rules.some((text) => looksAtOthers(text) || words(text).includes(name));
      return named ? [`${file} is new, and an accepted rule may read it`] : [];
    }
    const schema = now.site?.schemas[name];
    if (Object.hasOwn(after, name) && next.site?.schemas[name] !== schema) return [`schemas/settings/${name}.json is changed`];
    if (canonicalJson(before[name]) === canonicalJson(after[name])) return [];
    return dataFaults(schema === undefined ? {} : JSON.parse(schema), before[name], after[name], file);
  });
}

const settingsOf = ({ dataJson }: Judged): Readonly<Record<string, unknown>> =>
  (JSON.parse(dataJson) as { site_settings?: Record<string, unknown> }).site_settings ?? {};

/** Rego without comments and with empty strings. */
const bare = (text: string): string =>
  text.replaceAll(/"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*/g, (match) => (match.startsWith('#') ? '' : '""'));

const words = (text: string): readonly string[] => bare(text).match(/[A-Za-z_]\w*/g) ?? [];

/** Names that a file defines beside what a site may offer; each begins with `_`, for a rule of another name does not build. */
const helpers = (text: string): readonly string[] => [...new Set(words(text).filter((word) => word.startsWith('_') && word !== '_'))];

/**
 * Whether what a rule of the site says may depend on other rules: it reads `data` beside named data of the site and the libraries, names what
 * packages offer elsewhere than in a head, reads annotations of others, or has expressions inside of text. A denial more could then be a
 * denial less.
 */
function looksAtOthers(text: string): boolean {
  const code = bare(text);
  const data = code.replaceAll(/\bdata\.(?:site_settings\.[A-Za-z_]\w*|outwork\.lib\.[a-z_]+)/g, '');
  if (/\$["`]/.test(code)) return true;
  const bodies = code.replaceAll(/^(?:deny|ask|obligations) contains\b/gm, '');
  return /\bdata\b/.test(data) || /\b(?:deny|ask|obligations)\b/.test(bodies) || /\brego\.metadata\.chain\b/.test(code);
}
