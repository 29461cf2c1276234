import { resolve } from 'node:path';

/** A scenario is named by a path when there is a slash in it or it ends in `.json`; else it is a shipped one. */
export const isScenarioPath = (nameOrPath: string): boolean => nameOrPath.includes('/') || nameOrPath.endsWith('.json');

/** The same scenario for whoever stands elsewhere: a path is taken from `base`, a name stays. */
export const scenarioFrom = (base: string, nameOrPath: string): string =>
  isScenarioPath(nameOrPath) ? resolve(base, nameOrPath) : nameOrPath;
