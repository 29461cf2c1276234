import { loadCases } from '../../../adapters/policy/cases.ts';
import { SHIPPED } from './policy-dir.ts';

/** Every row of the shipped table. */
export const CASES = await loadCases(SHIPPED);

/** Those that are asked under the shipped data as it is. */
export const PLAIN_CASES = CASES.filter(({ settings }) => settings === undefined);
