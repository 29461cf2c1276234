import type { Admission } from './admission.ts';
import type { GuestChannel } from './guest-channel.ts';
import type { ReportRefusal } from './refusals.ts';

/** What the socket a request came in by says of it. */
export interface Seat {
  readonly owner: { readonly tenant: string; readonly user: string; readonly sandbox: string };
  readonly admission: Admission;
  readonly channel: GuestChannel;
  readonly refused: ReportRefusal;
}
