import { kernelUsers, openKernel } from '../support/sandbox-client.ts';
import { engineConformance } from './engine.ts';

const engines = { bubblewrap: openKernel };

for (const [name, open] of Object.entries(engines)) {
  for (const user of kernelUsers()) engineConformance(name, user, open);
}
