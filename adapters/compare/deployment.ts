import type { EngineName } from '../../core/run/types.ts';
import type { PlacementRecord } from './record.ts';
import type { Deployment } from './results.ts';

const MiB = 1024 * 1024;

/** What an engine asks of the host beside the kernel's own process. Facts of the engine, not measurements. */
const NEEDS: Readonly<Record<EngineName, Pick<Deployment, 'daemons' | 'images' | 'privileges'>>> = {
  bubblewrap: {
    daemons: 0,
    images: 0,
    privileges: ['unprivileged user namespaces', 'a sub-id range for the kernel user (set-uid newuidmap and newgidmap)'],
  },
  docker: { daemons: 1, images: 1, privileges: ['access to the Docker socket, which is root on the host'] },
};

export function deploymentOf(record: PlacementRecord): Deployment {
  return { ...NEEDS[record.engine], diskMiB: Number((record.diskBytes / MiB).toFixed(2)) };
}
