import { expect, it } from 'vitest';
import { read } from './sources.ts';

/** Names that an entry file exports, types marked. Only explicit lists are understood: `export *` fails. */
function exportedNames(file: string): string[] {
  const text = read(file).replace(/^\s*\/\/.*$/gm, '');
  expect(text).not.toMatch(/export\s+(\*|default)/);
  return [...text.matchAll(/export\s+(type\s+)?\{([^}]*)\}/g)]
    .flatMap(([, type, names = '']) =>
      names
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
        .map((name) => (type === undefined ? name : `type ${name}`)),
    )
    .sort();
}

it('the package has these entry points and no other', () => {
  const { exports, bin } = JSON.parse(read('package.json')) as { exports: Record<string, unknown>; bin: unknown };
  expect(Object.keys(exports)).toEqual(['.', './core', './conformance', './wire', './package.json']);
  expect(bin).toEqual({ outwork: 'adapters/cli/launcher.js' });
});

it('outwork exports a kernel to embed', () => {
  expect(exportedNames('adapters/outwork.ts')).toEqual([
    'createKernel',
    'loadConfig',
    'type ConfigOverrides',
    'type KernelOptions',
    'type LoadOptions',
  ]);
});

it('outwork/wire exports what the other end of the membrane needs', async () => {
  expect(exportedNames('core/wire/index.ts').filter((name) => !name.startsWith('type '))).toEqual([
    'OPERATIONS',
    'OPERATION_SCHEMAS',
    'WIRE_VERSION',
  ]);
  expect(Object.keys(await import('../../core/wire/index.ts')).sort()).toEqual(['OPERATIONS', 'OPERATION_SCHEMAS', 'WIRE_VERSION']);
});

it('outwork/conformance exports suites', () => {
  expect(exportedNames('test/conformance/index.ts')).toEqual([
    'brokerConformance',
    'deliveryConformance',
    'egressConformance',
    'storeConformance',
    'type BrokerWorld',
    'type MakeWorld',
    'type StoreWorld',
  ]);
});

it('outwork/core exports words, errors and limits, and nothing that does anything with them', async () => {
  expect(Object.keys(await import('../../core/index.ts')).sort()).toEqual([
    'ApiError',
    'ApprovalError',
    'CAPABILITIES',
    'CAPACITY',
    'CallError',
    'ConfigError',
    'EVENT_TYPES',
    'MembraneError',
    'NAME_PATTERN',
    'OutworkError',
    'PLACEMENTS',
    'PolicyError',
    'PrerequisiteError',
    'RunError',
    'SAFETY',
    'SandboxError',
    'StoreError',
    'UsageError',
    'errorBody',
    'isTerminal',
    'newId',
    'placementFor',
  ]);
  const types = exportedNames('core/index.ts').filter((name) => name.startsWith('type '));
  for (const port of ['Broker', 'Egress', 'Executor', 'Placement', 'Store']) expect(types).toContain(`type ${port}`);
  for (const seam of ['Clock', 'Delivery', 'ModelGateway', 'PolicyEngine', 'SandboxEngine']) expect(types).toContain(`type ${seam}`);
});
