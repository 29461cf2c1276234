import { placementWorld } from '../support/placement-world.ts';
import { type PlacementClaims, placementConformance } from './placement.ts';

/** One row per adapter; a placement that is missing here does not compile. */
const KEEPS: Record<PlacementClaims['name'], boolean> = {
  'host-loop-shell': true,
  'disposable-per-run': false,
  'persistent-per-user': true,
};

for (const [name, keepsSandbox] of Object.entries(KEEPS) as [PlacementClaims['name'], boolean][]) {
  placementConformance({ name, keepsSandbox }, (scenario) => placementWorld(name, scenario));
}
