import type { CapabilityName } from '../../core/capability/types.ts';
import type { ModelRequest } from '../../core/seams/model-gateway.ts';

/** A tool as the model sees it, and the capability that it is. */
export interface LoopTool {
  readonly capability: CapabilityName;
  readonly spec: NonNullable<ModelRequest['tools']>[number];
}

const text = { type: 'string' } as const;
const object = (properties: Record<string, { type: string } & Record<string, unknown>>, required: readonly string[]) =>
  ({ type: 'object', properties, required, additionalProperties: false }) as LoopTool['spec']['parameters'];

/** The tools of the loop. Arguments go to the capability as the model wrote them; the kernel judges them. */
export const LOOP_TOOLS: readonly LoopTool[] = [
  {
    capability: 'shell.exec',
    spec: {
      name: 'shell',
      description: 'Runs one command, without a shell unless argv names one. cwd is relative to the workspace.',
      parameters: object(
        {
          argv: { type: 'array', items: text },
          cwd: text,
          env: { type: 'object', additionalProperties: text },
          stdin: text,
          timeoutMs: { type: 'integer' },
          outputBytes: { type: 'integer', description: 'Limit of each output stream; held to between 1024 and 1048576.' },
          controls: { type: 'string', enum: ['keep', 'strip'] },
          save: {
            type: 'object',
            description: 'Also writes the output into a file of the workspace, up to its own limit.',
            properties: { path: text, bytes: { type: 'integer' } },
            required: ['path'],
            additionalProperties: false,
          },
          background: { type: 'boolean' },
          lifetimeMs: { type: 'integer' },
        },
        ['argv'],
      ),
    },
  },
  {
    capability: 'shell.background',
    spec: {
      name: 'background',
      description: 'Looks after background commands: lists them, shows the newest output of one, or ends one.',
      parameters: object({ op: { type: 'string', enum: ['list', 'tail', 'kill'] }, id: text, outputBytes: { type: 'integer' } }, ['op']),
    },
  },
  {
    capability: 'fs.read',
    spec: {
      name: 'read_file',
      description: 'Reads a file of the workspace.',
      parameters: object({ path: text, maxBytes: { type: 'integer' } }, ['path']),
    },
  },
  {
    capability: 'fs.write',
    spec: {
      name: 'write_file',
      description: 'Writes a file of the workspace, whole.',
      parameters: object({ path: text, body: text }, ['path', 'body']),
    },
  },
  {
    capability: 'fs.list',
    spec: { name: 'list_files', description: 'Lists a directory of the workspace.', parameters: object({ path: text }, ['path']) },
  },
  {
    capability: 'thread.read',
    spec: {
      name: 'read_thread',
      description: 'Reads messages of this thread.',
      parameters: object({ afterSeq: { type: 'integer' }, limit: { type: 'integer' } }, []),
    },
  },
];
