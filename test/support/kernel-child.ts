import { type E2eOptions, e2e } from './e2e.ts';

/**
 * A kernel in a process of its own, for tests that kill kernels: works on the state directory it is given until it is ended.
 * Arguments: one JSON of E2eOptions. Prints `ready` when it claims runs.
 */
const options = JSON.parse(process.argv[2] ?? '{}') as E2eOptions;
await e2e(options);
process.stdout.write('ready\n');
