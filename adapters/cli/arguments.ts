import { InvalidArgumentError } from 'commander';
import { NAME_PATTERN } from '../../core/ids.ts';

export const DAY = 24 * 60 * 60 * 1000;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: DAY };

export function durationArgument(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS[unit] ?? 0);
  if (ms < 1000 || ms > 366 * DAY) throw new InvalidArgumentError('Write a time such as 30m, 12h or 90d, from 1s to 366d.');
  return ms;
}

export function nameArgument(text: string): string {
  if (!NAME_PATTERN.test(text)) throw new InvalidArgumentError('A name is lower-case letters, digits, ".", "_" and "-", at most 63.');
  return text;
}

export function idArgument(prefix: string): (text: string) => string {
  const pattern = new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`);
  return (text) => {
    if (!pattern.test(text)) throw new InvalidArgumentError(`An id that starts with ${prefix}_ is wanted.`);
    return text;
  };
}

export function numberArgument(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= low && value <= high)) throw new InvalidArgumentError(`A whole number from ${low} to ${high} is wanted.`);
    return value;
  };
}

export function listOf<T extends string>(choices: readonly T[]): (text: string) => T[] {
  return (text) => {
    if (text === 'all') return [...choices];
    const items = text.split(',');
    const wrong = items.find((item) => !(choices as readonly string[]).includes(item));
    if (wrong !== undefined) throw new InvalidArgumentError(`Choose from ${choices.join(', ')}.`);
    return [...new Set(items)] as T[];
  };
}
