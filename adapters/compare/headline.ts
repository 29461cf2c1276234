import { type CompareResults, type PlacementResult, placementLabel } from './results.ts';

/** Figures closer than this are called equal: at ten turns the difference is noise. */
const SAME = 1.1;

export interface Headline {
  readonly answer: string;
  /** One sentence each. */
  readonly details: readonly string[];
}

/** What the figures say, in words a person who reads nothing else can use. Nothing is said about what was not measured. */
export function headlineOf(results: CompareResults): Headline {
  const name = namer(results);
  const details = [
    memorySentence(results.placements, name),
    resumeSentence(results.placements, name),
    enforcementSentence(results.placements, name),
    failureSentence(results.placements, name),
    loadSentence(results),
  ];
  return { answer: latencySentence(results.placements, name), details: details.filter((sentence) => sentence !== undefined) };
}

type Namer = (result: PlacementResult) => string;

/** The engine is part of a name only where several were compared. */
const namer =
  (results: CompareResults): Namer =>
  (result) =>
    results.engines.length > 1 ? placementLabel(result) : result.placement;

function ranked(
  placements: readonly PlacementResult[],
  read: (result: PlacementResult) => number | undefined,
): readonly { result: PlacementResult; value: number }[] {
  return placements
    .flatMap((result) => {
      const value = read(result);
      return value === undefined ? [] : [{ result, value }];
    })
    .sort((a, b) => a.value - b.value);
}

function latencySentence(placements: readonly PlacementResult[], name: Namer): string {
  const [best, ...others] = ranked(placements, (result) => result.latencyMs?.p50);
  if (best === undefined) return 'No turn completed, so nothing can be said about speed.';
  const [alone] = others;
  if (alone === undefined) return `${name(best.result)} answered a turn in ${ms(best.value)} at the median.`;
  const times = others.map(({ result, value }) => `${name(result)} ${comparison(value, best.value)} (${ms(value)})`);
  return `${name(best.result)} answered fastest, in ${ms(best.value)} at the median; ${list(times)}.`;
}

const comparison = (value: number, best: number): string =>
  value / best < SAME ? 'was about as fast' : `took ${(value / best).toFixed(1)} times as long`;

function memorySentence(placements: readonly PlacementResult[], name: Namer): string | undefined {
  const order = ranked(placements, (result) => result.memoryMiB?.idle);
  if (order.length === 0) return undefined;
  const parts = order.map(({ result, value }) => `${name(result)} ${value.toFixed(0)} MiB`);
  return `Idle, with one signed-in user, the kernel and what it keeps hold: ${list(parts)}.`;
}

function resumeSentence(placements: readonly PlacementResult[], name: Namer): string | undefined {
  const order = ranked(placements, (result) => result.killToResumeMs?.p50);
  if (order.length === 0) return undefined;
  return `After a kill in the middle of a turn, work went on after: ${list(order.map(({ result, value }) => `${name(result)} ${ms(value)}`))}.`;
}

function enforcementSentence(placements: readonly PlacementResult[], name: Namer): string | undefined {
  const trusting = placements.filter((result) => Object.values(result.enforcement).includes('executor'));
  if (trusting.length === 0 || trusting.length === placements.length) return undefined;
  const strict = placements.filter((result) => !trusting.includes(result));
  return `A denied command never starts under ${list(strict.map(name))}; under ${list(trusting.map(name))} the denial binds an honest executor, and the wall bounds a compromised one.`;
}

function failureSentence(placements: readonly PlacementResult[], name: Namer): string | undefined {
  const failed = placements.filter((result) => result.failed > 0);
  if (failed.length === 0) return undefined;
  return `Turns failed: ${list(failed.map((result) => `${name(result)} ${result.failed} of ${result.turns}`))}.`;
}

/** Other work on the machine lengthens every time; the placements still met the same, since their turns were interleaved. */
function loadSentence({ machine: { loadBefore, cores } }: CompareResults): string | undefined {
  if (loadBefore <= cores / 2) return undefined;
  return `The machine was busy with something else (load ${loadBefore} on ${cores} cores): compare the placements, not these times with others.`;
}

const ms = (value: number): string =>
  value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${value >= 10 ? value.toFixed(0) : value.toFixed(1)} ms`;

const list = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
