import type { ImageFault } from '../../core/seams/sandbox-engine.ts';

/** What was found of one part of an image that may be there already. */
export interface FoundPart {
  /** Digest of the sources it says it was built from; undefined when it says nothing. */
  readonly label: string | undefined;
  /** False when it is not, byte for byte, what those sources make. */
  readonly intact: boolean;
}

/**
 * Whether building may be skipped: only when every part that the image consists of is there and carries the label of these very sources.
 * What one part says counts for no other. Nothing to look at is no reason to skip.
 *
 * @param source - digest of all that the image is built from
 * @param parts - names of all parts: files of a directory, or images of a set
 * @returns the faults; `skip` is true when there is none
 */
export function buildGate(
  source: string,
  parts: readonly string[],
  found: ReadonlyMap<string, FoundPart>,
): { readonly skip: boolean; readonly faults: readonly ImageFault[] } {
  const faults = parts.flatMap((part): ImageFault[] => {
    const why = faultOf(source, found.get(part));
    return why === undefined ? [] : [{ part, why }];
  });
  return { skip: parts.length > 0 && faults.length === 0, faults };
}

function faultOf(source: string, part: FoundPart | undefined): ImageFault['why'] | undefined {
  if (part === undefined) return 'missing';
  if (part.label === undefined) return 'unlabelled';
  if (part.label !== source) return 'stale';
  return part.intact ? undefined : 'damaged';
}
