/**
 * The only way out of a sandbox. In this version there is none: `openRequests` is the evidence a ledger row needs before it is `done`.
 *
 * - E1 `revoke` cuts every request of the run's invocations; when it resolves none is open.
 * - E2 `openRequests` counts the requests of one permit that have no recorded end.
 */
export interface Egress {
  revoke(run: string): Promise<void>;
  openRequests(permit: string): number;
}
