import type { CommandOutcome } from '../../core/capability/types.ts';
import type { Owner } from '../../core/ids.ts';
import type {
  BackgroundOperation,
  BackgroundResult,
  CommandProgress,
  FileOperation,
  FileResult,
  ToolCommand,
} from '../../core/ports/placement.ts';
import type { ControlMessage } from '../../core/wire/protocol.ts';

/** One sandbox as the kernel reaches it: its own listening socket, and the control stream its guest opened on it. */
export interface SandboxChannel {
  readonly socketPath: string;
  /** Resolves when the guest has said hello and holds its control stream; rejects when the channel closes first. */
  readonly ready: Promise<void>;
  /** Resolves when the control stream has ended for good. */
  readonly lost: Promise<void>;
  /** Queues a message on the control stream. @throws SandboxError `guest_lost` */
  send(message: Extract<ControlMessage, { type: 'run' | 'cancel' | 'forget' | 'ping' }>): void;
  /** @throws SandboxError `guest_lost` and whatever code the guest answered */
  exec(run: string, command: ToolCommand, signal: AbortSignal, onProgress?: (progress: CommandProgress) => void): Promise<CommandOutcome>;
  file(operation: FileOperation, signal: AbortSignal): Promise<FileResult>;
  background(operation: BackgroundOperation, signal: AbortSignal): Promise<BackgroundResult>;
  /** Requests and bytes since it opened; `compare` reads the difference over a turn. */
  readonly counters: { readonly requests: number; readonly hostToSandbox: number; readonly bytes: number; readonly connections: number };
  /** Closes the listener and every accepted connection. */
  close(): Promise<void>;
}

/** Makes channels. `socketDir` exists already. */
export interface Membrane {
  open(sandbox: Owner & { readonly generation: string; readonly socketDir: string }): Promise<SandboxChannel>;
  /** OpenAPI 3.1 document of the operations, from the same schemas that validate them. */
  openApi(): unknown;
  close(): Promise<void>;
}
