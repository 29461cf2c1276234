// `outwork/wire`: what a program needs to speak the membrane from inside a sandbox. `test/architecture` pins this list.
export {
  type CheckpointBody,
  type ControlMessage,
  type ControlReply,
  type Harness,
  type HelloReply,
  type HelloRequest,
  type MembraneClient,
  OPERATIONS,
  type OperationName,
  type PermitClose,
  type RunContext,
  type SteerReply,
  WIRE_VERSION,
} from './protocol.ts';
export { OPERATION_SCHEMAS, type OperationSchemas } from './schemas.ts';
