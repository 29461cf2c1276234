/** One line of `doctor`: what was looked at, whether it is as it must be, and the command that mends it. */
export interface Check {
  readonly id: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly fix?: string;
  /** What fails is worth knowing and no reason not to run: a guard that this machine cannot give. */
  readonly warning?: true;
}
