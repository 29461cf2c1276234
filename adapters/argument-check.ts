import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type CapabilityDescriptor, DESCRIPTORS } from '../core/capability/descriptors.ts';
import type { Json } from '../core/json.ts';

/** Compiles the descriptors' argument schemas once; the check gives the first fault as `path: message`. */
export function compileArgumentChecks(): (descriptor: CapabilityDescriptor, args: Json) => string | undefined {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTuples: false, allErrors: false });
  const checks = new Map<string, ValidateFunction>(Object.values(DESCRIPTORS).map(({ name, args }) => [name, ajv.compile(args)]));
  return (descriptor, args) => {
    const check = checks.get(descriptor.name);
    if (check === undefined) return 'no schema';
    if (check(args)) return undefined;
    const [first] = check.errors ?? [];
    return `${first?.instancePath || '/'}: ${first?.message ?? 'invalid'}`.slice(0, 300);
  };
}
