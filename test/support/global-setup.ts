import { requireComponents } from './require.ts';

/** Runs once before all tests. */
export const setup = (): Promise<void> => requireComponents();
