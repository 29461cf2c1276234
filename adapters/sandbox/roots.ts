import { join } from 'node:path';
import { type Owner, ownerKey } from '../../core/ids.ts';
import { sha256Hex } from '../../core/json.ts';

/** The one function that names an owner's own place on this host; every root derives from it, and it from the actor. */
export const leafOf = (owner: Owner): string => sha256Hex(`outwork.leaf\0${ownerKey(owner)}`).slice(0, 32);

/** Workspace and HOME roots stand side by side: neither lies at or below a directory that a sandbox can write. */
export const workspaceDir = (stateDir: string, owner: Owner): string => join(stateDir, 'workspaces', leafOf(owner));
export const homeDir = (stateDir: string, owner: Owner): string => join(stateDir, 'homes', leafOf(owner));
