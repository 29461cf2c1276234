// What another package may build on: the words, ports and seams, and nothing that does anything. `test/architecture` pins this list.
export type { AdapterDeps, AdapterManifest } from './adapter.ts';
export type { Approval, ApprovalState, Ceiling, ReferencedFile, Shown } from './approval/types.ts';
export {
  CAPABILITIES,
  type Caller,
  type CallKey,
  type CallReply,
  type CallRequest,
  type CallScope,
  type CapabilityName,
  type CommandOutcome,
  type EffectClass,
  type Enforcer,
  type LocalPermit,
  type Reason,
  type ShellExecArgs,
} from './capability/types.ts';
export { type CompiledConfig, placementFor, type TenantConfig } from './config.ts';
export {
  ApiError,
  ApprovalError,
  CallError,
  ConfigError,
  type ErrorBody,
  errorBody,
  MembraneError,
  OutworkError,
  PolicyError,
  PrerequisiteError,
  RunError,
  SandboxError,
  StoreError,
  UsageError,
} from './errors.ts';
export { EVENT_TYPES, type EventType, type KernelEvent, type NewEvent } from './events.ts';
export { type IdKind, NAME_PATTERN, newId, type Owner } from './ids.ts';
export type { Json } from './json.ts';
export type {
  ApiCaller,
  Kernel,
  KernelGauges,
  KernelOperations,
  PostRequest,
  Readiness,
  RunView,
  Servable,
} from './kernel.ts';
export { CAPACITY, SAFETY } from './limits.ts';
export type { Measurable, MeasureSnapshot, SandboxUsage } from './measure.ts';
export type { Decision, Obligation, PolicyDigests, PolicyEngine, PolicyInput, PolicyStatus } from './policy/types.ts';
export type { Broker, CallCredential, CredentialedCall } from './ports/broker.ts';
export type { Egress } from './ports/egress.ts';
export type { Executor, ExecutorTask } from './ports/executor.ts';
export type { FileOperation, FileResult, Placement, SandboxTools, Seat, ToolCommand } from './ports/placement.ts';
export type { CallRow, DecisionRow, EventFilter, Store } from './ports/store.ts';
export {
  type Attempt,
  type EngineName,
  type ExecutorOutcome,
  type ExitClaim,
  type Gate,
  type GateKind,
  isTerminal,
  type Message,
  type Origin,
  PLACEMENTS,
  type PlacementName,
  type Role,
  type Run,
  type RunState,
  type Thread,
  type User,
} from './run/types.ts';
export type { Clock } from './seams/clock.ts';
export type { Delivery, DeliveryItem } from './seams/delivery.ts';
export type { LogFields, Logger, LogLevel } from './seams/logger.ts';
export type { ModelGateway, ModelMessage, ModelReply, ModelRequest, ToolCall } from './seams/model-gateway.ts';
export type { SandboxEngine, SandboxHandle, SandboxSpec } from './seams/sandbox-engine.ts';
