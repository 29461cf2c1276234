/** The part of the WebAssembly API that is used here: Node has it, its types do not, and the browser's library would bring all else. */
declare namespace WebAssembly {
  class Module {
    private readonly brand: true;
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Memory {
    readonly buffer: ArrayBuffer;
    constructor(pages: { readonly initial: number; readonly maximum?: number });
  }
  class Instance {
    readonly exports: unknown;
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  }
  function compile(bytes: Uint8Array<ArrayBuffer>): Promise<Module>;
}
