import type { AdapterManifest } from '../../core/adapter.ts';
import type { ShellExecArgs } from '../../core/capability/types.ts';
import { type Owner, ownerKey } from '../../core/ids.ts';
import type { Broker } from '../../core/ports/broker.ts';

/** A broker with secrets in memory. Its one rule: a command is credentialed by the recipe whose program it starts. */
export class TestBroker implements Broker {
  readonly #programs: Readonly<Record<string, string>>;
  readonly #held = new Map<string, Map<string, string>>();

  /** @param programs - recipe by program: `{ gh: 'github' }` */
  constructor(programs: Readonly<Record<string, string>> = {}) {
    this.#programs = programs;
  }

  get manifest(): AdapterManifest {
    return { port: 'broker', name: 'in-memory', create: () => this };
  }

  provide(owner: Owner, recipe: string, secret: string): void {
    const held = this.#held.get(ownerKey(owner)) ?? new Map<string, string>();
    this.#held.set(ownerKey(owner), held.set(recipe, secret));
  }

  take(owner: Owner, recipe: string): void {
    this.#held.get(ownerKey(owner))?.delete(recipe);
  }

  liveSecrets(owner?: Owner): readonly string[] {
    const held = owner === undefined ? [...this.#held.values()] : [this.#held.get(ownerKey(owner)) ?? new Map<string, string>()];
    return held.flatMap((secrets) => [...secrets.values()]);
  }

  async credentialOf(owner: Owner, { capability, args }: Parameters<Broker['credentialOf']>[1]): ReturnType<Broker['credentialOf']> {
    const recipe = capability === 'shell.exec' ? this.#programs[(args as unknown as ShellExecArgs).argv[0] ?? ''] : undefined;
    if (recipe === undefined) return { credential: 'none', recipe: '' };
    if (!(await this.isMissing(owner, recipe))) return { credential: 'present', recipe };
    return { credential: 'missing', recipe, hint: `outwork secret set ${recipe}` };
  }

  async isMissing(owner: Owner, recipe: string): Promise<boolean> {
    return Object.values(this.#programs).includes(recipe) && this.#held.get(ownerKey(owner))?.has(recipe) !== true;
  }
}
