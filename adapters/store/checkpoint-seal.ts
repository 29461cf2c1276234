import { StoreError } from '../../core/errors.ts';
import { sha256Hex } from '../../core/json.ts';
import type { Checkpoint } from '../../core/ports/store.ts';

/** Safe checkpoints kept of a run: the newest, and what stands in for it when it is damaged. */
export const KEPT_CHECKPOINTS = 3;

type Sealed = Pick<Checkpoint, 'run' | 'schema' | 'version' | 'body'>;

/** The checksum that is stored beside a checkpoint and compared when it is read. */
export const checkpointDigest = ({ run, schema, version, body }: Sealed): string =>
  sha256Hex(`checkpoint\0${run}\0${schema}\0${version}\0${body}`);

/**
 * S10. The first of `newestFirst` that matches its checksum and does not lie ahead of the ledger.
 * @throws StoreError `checkpoint_damaged` when there are some and none will do: the run must not start over as if it had none
 */
export function firstIntact(newestFirst: Iterable<Checkpoint & { readonly sha256: string }>, doneRows: number): Checkpoint | undefined {
  let seen = false;
  for (const { sha256, ...checkpoint } of newestFirst) {
    seen = true;
    if (checkpointDigest(checkpoint) === sha256 && checkpoint.ledgerPosition <= doneRows) return checkpoint;
  }
  if (seen) throw new StoreError('checkpoint_damaged', 'No checkpoint of the run matches its checksum and the ledger');
  return undefined;
}
