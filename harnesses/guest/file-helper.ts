import type { FileResult } from '../../core/ports/placement.ts';
import { wireError } from './errors.ts';
import { operate, type WorkspaceOperation } from './file-operations.ts';
import { LineSplitter } from './lines.ts';

/** Guest → helper. `home` is for the guest's own logs of background commands. */
export interface HelperRequest {
  readonly id: number;
  readonly root: 'workspace' | 'home';
  readonly operation: WorkspaceOperation;
}

export interface HelperReply {
  readonly id: number;
  readonly result?: FileResult;
  readonly error?: { readonly code: string; readonly message: string };
}

/** The resident helper: file operations as the tool uid, JSON lines on its standard streams, one after the other. Ends with its input. */
export function serveFiles(roots: { readonly workspace: string; readonly home: string }): void {
  process.umask(0o022);
  const lines = new LineSplitter((line) => {
    const request = JSON.parse(line) as HelperRequest;
    reply(answer(request, roots[request.root]));
  });
  process.stdin.on('data', (chunk: Buffer) => lines.push(chunk));
  process.stdin.on('end', () => process.exit(0));
}

function answer({ id, operation }: HelperRequest, root: string): HelperReply {
  try {
    return { id, result: operate(root, operation) };
  } catch (error) {
    return { id, error: wireError(error, 'io_failed') };
  }
}

function reply(value: HelperReply): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
