/**
 * What was made of a file's text, kept as long as the text is the same: of a bundle that is read again because one file has changed, the
 * others need not be parsed and checked again. Holds one entry a key, so it does not grow with time.
 */
export class FileCache {
  readonly #entries = new Map<string, { readonly text: string; readonly value: unknown }>();

  /** @param key - names the file and what is made of it; `make` depends on nothing but `text` */
  get<T>(key: string, text: string, make: () => T): T {
    const held = this.#entries.get(key);
    if (held?.text === text) return held.value as T;
    const value = make();
    this.#entries.set(key, { text, value });
    return value;
  }
}
