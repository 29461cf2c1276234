import { Ajv } from 'ajv';
import schema from './results.schema.json' with { type: 'json' };
import { type CompareResults, NULLABLE_FIGURES, placementLabel } from './results.ts';

/**
 * Every reason why `results` may not be written: schema faults, a null without an entry in `unmeasured`, an entry for what was measured.
 * Empty when there is none.
 */
export function resultFaults(results: CompareResults): readonly string[] {
  const validate = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);
  const faults: string[] = [];
  if (!validate(results))
    for (const error of validate.errors ?? []) faults.push(`${error.instancePath || '/'}: ${error.message ?? 'wrong'}`);
  return [...faults, ...unmeasuredFaults(results)];
}

function unmeasuredFaults(results: CompareResults): readonly string[] {
  const named = new Set(results.unmeasured.map((entry) => entry.field));
  const nulls = new Set<string>();
  const faults: string[] = [];
  const demand = (isNull: boolean, exact: string, general: string) => {
    if (!isNull) return;
    nulls.add(exact).add(general);
    if (!named.has(exact) && !named.has(general)) faults.push(`${exact}: null, but not in unmeasured`);
  };
  for (const result of results.placements) {
    for (const figure of NULLABLE_FIGURES) demand(result[figure] === null, `${placementLabel(result)}.${figure}`, figure);
  }
  for (const [part, value] of Object.entries(results.floor)) demand(value === null, `floor.${part}`, `floor.${part}`);
  demand(results.workload.repository === null, 'workload.repository', 'workload.repository');
  for (const field of named) if (!nulls.has(field)) faults.push(`${field}: in unmeasured, but nothing is null there`);
  return faults;
}
