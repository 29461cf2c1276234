import type { Role } from '../../../core/run/types.ts';
import { type CommandContext, DEFAULT_TENANT, withOperations } from '../context.ts';
import { timeText } from '../describe.ts';
import { EXIT } from '../exit-code.ts';
import { printTable } from '../table.ts';

export interface UserOptions {
  readonly tenant?: string;
}

/** Makes a user; without `--role` an ordinary one. */
export async function userAdd(
  context: CommandContext,
  name: string,
  options: UserOptions & { readonly role?: readonly Role[] },
): Promise<number> {
  const { tenant = DEFAULT_TENANT, role: roles = ['user'] } = options;
  const user = await withOperations(context, (kernel) => kernel.addUser({ tenant, name, roles }));
  if (context.out.json) context.out.document(user);
  else context.out.line(`${user.tenant}/${user.name} added`);
  return EXIT.good;
}

/** Users of one tenant, or of all. */
export async function userList(context: CommandContext, { tenant }: UserOptions): Promise<number> {
  const { out } = context;
  const users = await withOperations(context, (kernel) => kernel.listUsers(tenant));
  if (out.json) {
    out.document(users);
    return EXIT.good;
  }
  const columns = [
    { title: 'TENANT', value: (user: (typeof users)[0]) => user.tenant },
    { title: 'USER', value: (user: (typeof users)[0]) => user.name },
    { title: 'ROLES', value: (user: (typeof users)[0]) => user.roles.join(',') },
    { title: 'STATE', value: (user: (typeof users)[0]) => (user.disabled ? 'disabled' : 'active') },
    { title: 'CREATED', value: (user: (typeof users)[0]) => timeText(user.createdAtMs) },
  ];
  printTable(out, columns, users, 'no users');
  return EXIT.good;
}

/** Issues a bearer token: the token alone on standard output, its end on standard error. It is shown this once. */
export async function userToken(
  context: CommandContext,
  name: string,
  options: UserOptions & { readonly ttl: number; readonly revoke?: boolean },
): Promise<number> {
  const { tenant = DEFAULT_TENANT, ttl } = options;
  if (options.revoke === true) return revoke(context, tenant, name);
  const issued = await withOperations(context, (kernel) => kernel.issueToken({ tenant, name, ttlMs: ttl }));
  if (context.out.json) context.out.document(issued);
  else {
    context.out.line(issued.token);
    context.out.note(`for ${tenant}/${name} until ${timeText(issued.expiresAtMs)}; it is not shown again`);
  }
  return EXIT.good;
}

/** Ends every token of a user, at once: the next request with one is refused. */
async function revoke(context: CommandContext, tenant: string, name: string): Promise<number> {
  const { revoked } = await withOperations(context, (kernel) => kernel.revokeTokens({ tenant, name }));
  if (context.out.json) context.out.document({ revoked });
  else context.out.line(`${revoked} ${revoked === 1 ? 'token' : 'tokens'} of ${tenant}/${name} revoked`);
  return EXIT.good;
}

/** Switches a user off. */
export const userDisable = (context: CommandContext, name: string, options: UserOptions) => switchUser(true, context, name, options);

/** Lets a disabled user act again. */
export const userEnable = (context: CommandContext, name: string, options: UserOptions) => switchUser(false, context, name, options);

async function switchUser(disabled: boolean, context: CommandContext, name: string, options: UserOptions): Promise<number> {
  const { tenant = DEFAULT_TENANT } = options;
  const user = await withOperations(context, (kernel) => kernel.disableUser({ tenant, name, disabled }));
  if (context.out.json) context.out.document(user);
  else context.out.line(`${user.tenant}/${user.name} ${user.disabled ? 'disabled' : 'enabled'}`);
  return EXIT.good;
}
